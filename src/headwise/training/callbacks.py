"""Who looks at a run while it goes: each a callback that says when it is next due."""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from headwise.checks import checked_count, plain
from headwise.errors import CheckpointError, ConfigError
from headwise.training.episodes import RECENT_EPISODES
from headwise.training.evaluate import Evaluation
from headwise.training.loggers.base import Logger
from headwise.training.progress import Progress
from headwise.training.report import FloatArray, Report
from headwise.training.watch import LATER, RunCallback, Watch

DISPLAY_SECONDS = 0.5
CHECKPOINT_SECONDS = 60.0
"""Time between checkpoints, where no number of steps is given."""
MAX_TIME_SHARE = 0.05
"""The largest share of the time that checkpoints may take, where no number of steps is given."""
logger = logging.getLogger("headwise")


Callback: TypeAlias = Callable[[Report], object] | RunCallback
"""Called with every report, and the run stops when it returns True; or a `RunCallback`."""


def after(env_steps: int, every: int) -> int:
    """The next multiple of `every`."""
    return (env_steps // every + 1) * every


@dataclass(frozen=True)
class StopOnReturn:
    """A callback that stops a run when its mean return is good enough.

    By default it is that of the last episodes of training; a member that has not played so many yet
    has not reached it. Members that have diverged are not waited for.
    """

    score: float
    members: Literal["all", "any"] = "all"
    """Whether every member must reach the score, or one of them."""
    episodes: int = 100
    """Episodes of training that the score is the mean of, up to 1000."""
    on: Literal["rollout", "eval"] = "rollout"
    """Whether it is the return in training, or in the evaluations that `eval_every` asks for."""

    def __post_init__(self) -> None:
        score = plain(self.score)
        if not isinstance(score, int | float) or not math.isfinite(score):
            raise ConfigError("the score to stop at must be a number", got=score)
        if self.members not in ("all", "any"):
            raise ConfigError(
                "members must be all or any: which of them must reach the return",
                got=self.members,
                allowed="'all' or 'any'",
            )
        if self.on not in ("rollout", "eval"):
            raise ConfigError(
                "on must be rollout or eval: which return must be reached",
                got=self.on,
                allowed="'rollout' or 'eval'",
            )
        episodes = checked_count("episodes", self.episodes, most=RECENT_EPISODES)
        for name, value in (("score", score), ("episodes", episodes)):
            object.__setattr__(self, name, value)

    def __call__(self, report: Report) -> bool:
        """Whether to stop."""
        if not report.alive.any():
            return True  # no member is left to reach anything
        if self.on == "eval":
            found = report.values.get("eval/mean_return")
            if found is None:
                return False
            good = found >= self.score
        else:
            last = [returns[-self.episodes :] for returns in report.last_returns]
            enough = [len(mine) == self.episodes and mine.mean() >= self.score for mine in last]
            good = np.array(enough, dtype=np.bool_)
        reached = good[report.alive]
        return bool(reached.all() if self.members == "all" else reached.any())


class Evaluate(RunCallback):
    """Measures the members now and then; what they score is in the report of that step.

    Args:
        play: Plays episodes with what was learned so far.
        every: Environment steps of a member between two evaluations.
        note: Is told of each.
    """

    def __init__(
        self, play: Callable[[], Evaluation], every: int, note: Callable[[Evaluation], None]
    ) -> None:
        self._play, self._every, self._note = play, every, note
        self._next = 0

    def open(self, run: Watch) -> None:
        """Counts from where the run is."""
        self._next = after(run.loop.env_steps, self._every)

    def next_due(self, env_steps: int) -> int:
        """The next multiple of so many steps."""
        return self._next

    def __call__(self, run: Watch) -> bool:
        """Plays, if it is time."""
        if run.loop.env_steps >= self._next:
            self._next = after(run.loop.env_steps, self._every)
            found = self._play()
            self._note(found)
            lengths: FloatArray = found.lengths.mean(axis=-1)
            run.evaluated({"eval/mean_return": found.scores, "eval/mean_ep_length": lengths})
        return False


class Log(RunCallback):
    """Hands a report to loggers and to functions now and then, and after every evaluation.

    Args:
        loggers: Who writes numbers down.
        functions: Who is told, and may stop the run.
        every: Environment steps of a member between two reports.
    """

    def __init__(
        self, loggers: Sequence[Logger], functions: Sequence[Callable[[Report], object]], every: int
    ) -> None:
        self._loggers, self._functions, self._every = loggers, functions, every
        self._next = self._told = 0
        self._open = ExitStack()
        self._diverged = np.zeros(0, dtype=np.bool_)
        self._warned_of_temperature = False

    def open(self, run: Watch) -> None:
        """Opens all loggers, or none."""
        step = self._told = run.loop.env_steps
        self._next = after(step, self._every)
        self._diverged = ~run.loop.algorithm.alive.cpu().numpy()
        with ExitStack() as opened:
            for one in self._loggers:
                one.open(run.loop.keys.seeds, step)
                opened.callback(one.close)
            self._open = opened.pop_all()

    def next_due(self, env_steps: int) -> int:
        """The next multiple of so many steps."""
        return self._next

    def __call__(self, run: Watch) -> bool:
        """Reports, if it is time or something was measured."""
        step = run.loop.env_steps
        if step < self._next and run.evaluated_at != step:
            return False
        if step >= self._next:
            self._next = after(step, self._every)
        return self._tell(run)

    def finish(self, run: Watch) -> None:
        """Reports the end of the run, if that was not done just now."""
        if self._told != run.loop.env_steps:
            self._tell(run)

    def flush(self) -> None:
        """Makes safe what was written down, so that it is never older than a checkpoint."""
        for one in self._loggers:
            one.flush()

    def close(self) -> None:
        """Closes all loggers."""
        self._open.close()

    def _tell(self, run: Watch) -> bool:
        report = run.report()
        self._told = report.step
        for seed, alive, known in zip(report.seeds, report.alive, self._diverged, strict=True):
            if not alive and not known:
                logger.warning(
                    "Seed %d has diverged by step %d: its gradient is not finite. It is frozen as "
                    "it was; the other seeds go on. A smaller learning_rate may help.",
                    seed,
                    report.step,
                )
        self._diverged = ~report.alive
        self._warn_of_temperature(run, report)
        for one in self._loggers:
            one.write(report)
        answers = [function(report) for function in self._functions]
        return any(answer is True or answer is np.True_ for answer in answers)

    def _warn_of_temperature(self, run: Watch, report: Report) -> None:
        """A temperature without bound drowns the reward; its target entropy is out of reach."""
        hot = run.loop.metrics.get("warn/temperature")
        if self._warned_of_temperature or hot is None or not bool(hot.any()):
            return
        self._warned_of_temperature = True
        logger.warning(
            "A temperature has run away by step %d: the heads cannot be as random as "
            "target_entropy asks and still earn anything. Lower it: target_entropy=0.1, or let it "
            "fall, target_entropy_end=0.05.",
            report.step,
        )


class Show(RunCallback):
    """Draws the display.

    Args:
        progress: The display.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._next = 0.0

    def open(self, run: Watch) -> None:
        """Opens it."""
        self._progress.open(run.total, run.loop.env_steps)

    def __call__(self, run: Watch) -> bool:
        """Draws, twice a second."""
        if time.monotonic() >= self._next:
            self.finish(run)
            self._next = time.monotonic() + DISPLAY_SECONDS
        return False

    def finish(self, run: Watch) -> None:
        """Draws."""
        self._progress.show(run.report(latest=True))

    def close(self) -> None:
        """Leaves the last state standing."""
        self._progress.close()


class Checkpoint(RunCallback):
    """Writes checkpoints now and then.

    One that cannot be written is reported, and the run goes on: the previous one is still there,
    and the next may succeed. The loop writes the first and the last, which must succeed.

    Args:
        save: Writes a checkpoint.
        every: Environment steps of a member between two; None goes by the clock.
        before: Is called before each.
    """

    def __init__(
        self, save: Callable[[], None], every: int | None, before: Callable[[], None]
    ) -> None:
        self._save, self._every, self._before = save, every, before
        self._next_step = 0
        self._next_time = time.monotonic() + CHECKPOINT_SECONDS

    def open(self, run: Watch) -> None:
        """Counts from where the run is."""
        if self._every is not None:
            self._next_step = after(run.loop.env_steps, self._every)

    def next_due(self, env_steps: int) -> int:
        """The next multiple of so many steps."""
        return LATER if self._every is None else self._next_step

    def __call__(self, run: Watch) -> bool:
        """Writes one if it is time, or says why it could not."""
        step, started = run.loop.env_steps, time.monotonic()
        if step < self._next_step if self._every is not None else started < self._next_time:
            return False
        self._before()
        try:
            self._save()
        except CheckpointError as error:
            logger.warning("%s The run goes on, and tries again later.", error)
        if self._every is not None:
            self._next_step = after(step, self._every)
        ended = time.monotonic()
        self._next_time = ended + max(CHECKPOINT_SECONDS, (ended - started) / MAX_TIME_SHARE)
        return False


class Interrupt(RunCallback):
    """Lets Ctrl-C wait for the end of a tick, so that the state is whole when it is saved."""

    def __init__(self) -> None:
        self.pressed = False
        self._open = ExitStack()

    def open(self, run: Watch) -> None:
        """Listens, where that can be: only the main thread hears of it."""
        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGINT, lambda *_: self._press())
            self._open.callback(signal.signal, signal.SIGINT, before)

    def next_due(self, env_steps: int) -> int:
        """At once where it was pressed meanwhile."""
        return env_steps if self.pressed else LATER

    def __call__(self, run: Watch) -> bool:
        """Whether it was pressed."""
        return self.pressed

    def close(self) -> None:
        """Leaves Ctrl-C to its previous handler."""
        self._open.close()

    def _press(self) -> None:
        if self.pressed:  # twice: at once
            raise KeyboardInterrupt
        self.pressed = True


def split(callbacks: object) -> tuple[list[Callable[[Report], object]], list[RunCallback]]:
    """The functions of a report and the others, of callbacks as a user gives them."""
    if not isinstance(callbacks, Sequence) or isinstance(callbacks, str):
        raise ConfigError(
            "callbacks must be a list", got=repr(callbacks), allowed="callbacks=[...]"
        )
    for one in callbacks:
        if not callable(one):
            raise ConfigError(
                "a callback must be callable", got=repr(one), allowed="a function of a Report"
            )
    others = [one for one in callbacks if isinstance(one, RunCallback)]
    return [one for one in callbacks if not isinstance(one, RunCallback)], others


def check_loggers(loggers: object) -> None:
    """Refuses what is no list of loggers."""
    if not isinstance(loggers, Sequence) or isinstance(loggers, str):
        raise ConfigError("loggers must be a list", got=repr(loggers), allowed="loggers=[...]")
    calls = ("open", "write", "flush", "close")
    for one in loggers:
        if not all(callable(getattr(one, c, None)) for c in calls):
            raise ConfigError(
                "not a logger", got=repr(one), allowed=f"something with {', '.join(calls)}"
            )
