"""Where an agent is measured: when it is asked to, and greedily while it learns."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from headwise.agent.loading import RESUME
from headwise.agent.world import World
from headwise.checks import checked_count
from headwise.envs.types import Reseedable, VecEnv
from headwise.errors import CheckpointError, EnvError
from headwise.training.callbacks import Evaluate
from headwise.training.checkpoint import read_checkpoint
from headwise.training.evaluate import (
    Evaluation,
    evaluate_loop,
    evaluation_seeds,
    fresh_seeds,
)
from headwise.training.loop import Loop
from headwise.training.threads import training_threads
from headwise.training.watch import Watch

EPISODES = 20
"""Episodes of a member in an evaluation, by default."""
SCHEDULED = 3
"""The purpose of episodes that are played while an agent learns."""
logger = logging.getLogger("headwise")


@contextmanager
def stage(world: World, loop: Loop, number: int, episodes: int) -> Iterator[VecEnv]:
    """An environment to play in, whose episodes follow from the seeds.

    If there is no second one, it is that of training, which then goes on with new episodes.

    Args:
        world: What makes one.
        loop: The training, whose environment may have to do.
        number: Another one gives other episodes.
        episodes: Those that each member is to play: with fewer, fewer slots are made.
    """
    slots, seeds = loop.env.num_slots, evaluation_seeds(loop.keys, number)
    with training_threads(len(seeds), loop.keys.device):
        if not world.is_alone(len(seeds), slots):
            with closing(world.few(seeds, slots, episodes)) as env:
                yield env
            return
        only = loop.env
        assert isinstance(only, Reseedable), "what was handed over"
        only.reseed(seeds)
        loop.in_episodes = False
        try:
            yield only
        finally:
            only.reseed(fresh_seeds(loop.keys, RESUME, loop.ticks))


class Scheduled(Evaluate):
    """Plays so many greedy episodes now and then, and keeps the best agent so far in a file.

    Which episodes they are follows from the seeds and the step alone, and nothing of the run is
    touched: it learns the same with and without.

    Args:
        world: What makes the environment.
        loop: The run.
        every: Environment steps of a member between two evaluations.
        episodes: Episodes of each member.
        note: Is told of each evaluation.
        best: The file for the agent as it was when a member scored best; None keeps none.
        save: Writes it.
    """

    def __init__(
        self,
        world: World,
        loop: Loop,
        every: int,
        episodes: int,
        note: Callable[[Evaluation], None],
        best: Path | None,
        save: Callable[[Path], None],
    ) -> None:
        super().__init__(self._play, every, note)
        self._world, self._loop, self._episodes = world, loop, episodes
        self._best, self._save, self._record = best, save, -np.inf
        self._env: VecEnv | None = None
        if world.is_alone(loop.keys.num_members, loop.lazy_env.num_slots):
            raise EnvError(
                "evaluation during training needs a second environment, and this agent was handed "
                "the only one there is",
                got=f"eval_every={every}",
                fix="Hand over an id, or a callable that makes the environment; or leave "
                "eval_every out, and call evaluate between two calls of learn.",
            )

    def open(self, run: Watch) -> None:
        """Looks up what the best agent so far scored, where a run goes on."""
        super().open(run)
        if self._best is not None:
            self._record = best_score(self._best)

    def __call__(self, run: Watch) -> bool:
        """Plays if it is time, and saves the agent if no evaluation was better."""
        super().__call__(run)
        if run.evaluated_at == run.loop.env_steps and self._best is not None:
            scores = run.report().values["eval/mean_return"][run.report().alive]
            if len(scores) and scores.max() > self._record:
                try:
                    self._save(self._best)
                    self._record = float(scores.max())
                except CheckpointError as error:
                    logger.warning("%s The run goes on, and tries again later.", error)
        return False

    def close(self) -> None:
        """Closes the environment."""
        if self._env is not None:
            self._env.close()
            self._env = None

    def _play(self) -> Evaluation:
        seeds = fresh_seeds(self._loop.keys, SCHEDULED, self._loop.env_steps)
        if self._env is not None and isinstance(self._env, Reseedable):
            self._env.reseed(seeds)
        else:
            self.close()
            self._env = self._world.few(seeds, self._loop.lazy_env.num_slots, self._episodes)
        return evaluate_loop(self._loop, self._env, self._episodes)


def scheduled(
    world: World,
    loop: Loop,
    every: int | None,
    episodes: int,
    checkpoint: str | os.PathLike[str] | None,
    note: Callable[[Evaluation], None],
    save: Callable[[Path], None],
    *,
    is_new: bool,
) -> Scheduled | None:
    """The evaluations that a user asks for, if any; with a checkpoint the best agent is kept.

    A run that `is_new` does not replace the best of another.
    """
    episodes = checked_count("eval_episodes", episodes)
    if every is None:
        return None
    best = best_path(checkpoint) if isinstance(checkpoint, str | os.PathLike) else None
    if best is not None and is_new and best.exists():
        raise CheckpointError(
            f"{os.fspath(best)!r} holds the best agent of another run",
            fix="Delete it, or choose another path for the checkpoint.",
        )
    return Scheduled(world, loop, every, episodes, note, best, save)


def best_path(checkpoint: str | os.PathLike[str]) -> Path:
    """Where the best agent is kept, beside the checkpoint: `run.zip` has `run-best.zip`."""
    path = Path(checkpoint)
    return path.with_name(f"{path.stem}-best{path.suffix}")


def best_score(path: Path) -> float:
    """What the best member in such a file scored; nothing if there is none."""
    if not path.exists():
        return -np.inf
    scores = read_checkpoint(path, only=("scores",)).tensors.get("scores", {}).get("scores")
    if scores is None:
        raise CheckpointError(
            f"{os.fspath(path)!r} is no agent that an evaluation has kept",
            fix="Choose another path for the checkpoint, or move that file.",
        )
    return float(np.nanmax(scores.numpy(), initial=-np.inf))
