"""One call of `learn`: what is watched, written and saved while a loop goes on."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence

from headwise.agent.storage import held_steps
from headwise.algorithms.base import RolloutPlan
from headwise.checks import checked_switch
from headwise.errors import CheckpointError, ConfigError
from headwise.training.callbacks import (
    Callback,
    Checkpoint,
    Evaluate,
    Interrupt,
    Log,
    Show,
    StopOnReturn,
    check_loggers,
    split,
)
from headwise.training.loggers.base import Logger
from headwise.training.loop import Loop
from headwise.training.progress import Progress
from headwise.training.replay_room import check_room
from headwise.training.watch import RunCallback, Watch

logger = logging.getLogger("headwise")


def check_ready(loop: Loop, *, has_room: bool = False) -> bool:
    """Refuses to learn without an environment, or without room for the replay.

    Who only acts needs neither, so it is not asked before.

    Args:
        loop: The run.
        has_room: Whether the room was asked for before; it is not warned twice.

    Returns:
        That there is room.
    """
    loop.lazy_env.opened()
    if not has_room:
        check_room(loop)
    return True


def train(
    loop: Loop,
    target: int,
    *,
    save: Callable[[], None],
    load: str,
    is_new: bool,
    tell: bool,
    title: str,
    progress: bool,
    callbacks: Sequence[Callback],
    loggers: Sequence[Logger],
    checkpoint: str | os.PathLike[str] | None,
    checkpoint_every: int | None,
    log_every: int,
    evaluate: Evaluate | None = None,
) -> None:
    """Goes on until each member has taken so many environment steps in all.

    Args:
        loop: The run.
        target: The steps to reach.
        save: Writes the checkpoint.
        load: What a user writes to load what was saved.
        is_new: Whether the run begins now; then files of another run are not touched.
        tell: Whether to say so if nothing was learned.
        title: What is trained, for the display.
        progress: Whether there is one.
        callbacks: Called with every report; the run stops when one returns True.
        loggers: Where numbers are written.
        checkpoint: The file that `save` writes; None if nothing is to be saved.
        checkpoint_every: Steps of a member between two checkpoints; None goes by the clock.
        log_every: Environment steps of a member between two reports.
        evaluate: Measures the members now and then.
    """
    if checkpoint is None and checkpoint_every is not None:
        raise ConfigError(
            "checkpoint_every needs a checkpoint",
            got=checkpoint_every,
            fix='Say where: learn(..., checkpoint="run.zip").',
        )
    if checkpoint is not None and not isinstance(checkpoint, str | os.PathLike):
        raise CheckpointError(
            "a checkpoint needs the path of a file", got=repr(checkpoint), allowed="'run.zip'"
        )
    shown = Progress(title) if checked_switch("progress", progress) else None
    first, updates = loop.env_steps, loop.updates
    check_loggers(loggers)
    functions, others = split(callbacks)
    if evaluate is None and any(isinstance(f, StopOnReturn) and f.on == "eval" for f in functions):
        raise ConfigError(
            "a run that is not evaluated cannot stop on an evaluation",
            got="StopOnReturn(on='eval')",
            fix="Say how often to evaluate: learn(..., eval_every=10_000).",
        )
    log, interrupt = Log(loggers, functions, log_every), Interrupt()
    stack: list[RunCallback] = [interrupt] if evaluate is None else [interrupt, evaluate]
    stack += [log, *others]
    stack += [] if shown is None else [Show(shown)]
    stack += [] if checkpoint is None else [Checkpoint(save, checkpoint_every, log.flush)]
    watch = Watch(loop, target, stack)
    if checkpoint is not None:
        _refuse_to_replace(checkpoint, first, load)
    if is_new:
        for one in loggers:
            getattr(one, "check_unused", lambda: None)()
    if checkpoint is not None:
        save()  # an unwritable path is found now, not after a night
    with watch:
        loop.run(target, watch, watch.due)
        watch.finish()
    if checkpoint is not None:
        save()
    if interrupt.pressed:
        saved = None if checkpoint is None else load
        raise KeyboardInterrupt(_how_to_go_on(loop.env_steps, target, saved))
    if tell and loop.updates == updates:
        _warn_of_too_few_steps(loop, loop.env_steps - first)


def _refuse_to_replace(path: str | os.PathLike[str], steps: int, load: str) -> None:
    """A checkpoint with more steps than the agent must not be overwritten."""
    held = held_steps(path)
    if held > steps:
        raise CheckpointError(
            f"{os.fspath(path)!r} holds a run that is further than this one",
            got=f"{held:,} steps there, {steps:,} here",
            fix=f"Go on with it: {load}.learn(...). Or delete it, or choose another path.",
        )


def _how_to_go_on(steps: int, target: int, load: str | None) -> str:
    done = f"stopped at {steps:,} of {target:,} steps"
    if load is None:
        return f"{done}; agent.learn({max(target - steps, 1)}) goes on"
    return f"{done} and saved; go on with {load}.learn()"


def _warn_of_too_few_steps(loop: Loop, steps: int) -> None:
    plan = loop.algorithm.plan
    if isinstance(plan, RolloutPlan):
        needed, setting = plan.length * loop.lazy_env.num_slots, "n_steps"
    else:
        needed, setting = plan.learning_starts, "learning_starts"
    logger.warning(
        "Nothing was learned in %s steps: an update needs %s before it. Take more, or set a "
        "smaller %s.",
        f"{steps:,}",
        f"{needed:,}",
        setting,
    )
