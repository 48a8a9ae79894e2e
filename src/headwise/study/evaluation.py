"""Greedy evaluation of the runs of a study: on a schedule and at the end, by draws of its own.

Nothing of a training changes by it: episodes are played in another environment, with seeds that no
training uses, and what is learned is the same with and without.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwise import checks
from headwise.errors import ConfigError
from headwise.study.run import EVALUATE, Run

if TYPE_CHECKING:
    from headwise.envs.types import VecEnv
    from headwise.training.loop import Loop


@dataclass(frozen=True)
class Evaluate:
    """How the runs of a study are evaluated: by greedy episodes in an environment of their own.

    It is a part of a run's id, since it decides by what a report ranks.
    """

    every: float = 0.05
    """The share of a run between two evaluations."""
    episodes: int = 20
    """Episodes of each run in an evaluation."""
    last: int = 100
    """Episodes of the one at the end, which ranks the run."""
    max_steps: int | None = None
    """The longest episode, for environments whose episodes may never end: what it has earned by
    then counts."""

    def __post_init__(self) -> None:
        every = checks.plain(self.every)
        if isinstance(every, bool) or not isinstance(every, int | float) or not 0.005 <= every <= 1:
            raise ConfigError(
                "every must be the share of a run between two evaluations",
                got=self.every,
                allowed="from 0.005 to 1: 0.05 evaluates 20 times",
            )
        object.__setattr__(self, "every", float(every))
        for name in ("episodes", "last"):
            object.__setattr__(self, name, checks.checked_count(name, getattr(self, name)))
        most = checks.optional_count("max_steps", self.max_steps)
        object.__setattr__(self, "max_steps", most)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def evaluation_of(run: Run) -> Evaluate | None:
    """How a run is evaluated, if it is."""
    said = run.more.get(EVALUATE)
    return None if said is None else Evaluate(**said)


class Evaluator:
    """Evaluates the members of a pack, and keeps what they scored.

    The one at the end is that of `Agent.evaluate` and `headwise eval` with as many episodes.

    Args:
        how: When, and in how many episodes.
        run: One of the pack's runs.
        parts: In how many parts the training is done.
        threads: Of the environment.
    """

    def __init__(self, how: Evaluate, run: Run, parts: int, threads: int | None = 1) -> None:
        self._how, self._run, self._parts, self._threads = how, run, parts, threads
        self.found: list[tuple[int, list[float | None], list[float | None]]] = []
        """Of each evaluation the step, and the mean return and length of every member."""
        self._env: VecEnv | None = None

    def after(self, part: int, loop: Loop) -> None:
        """Evaluates, if it is time."""
        done, every = part == self._parts, self._how.every * self._parts
        if done or int(part / every + 1e-9) > int((part - 1) / every + 1e-9):
            self._play(loop, self._how.last if done else self._how.episodes, done)

    def _play(self, loop: Loop, episodes: int, is_last: bool) -> None:
        from headwise.agent.scheduled import SCHEDULED
        from headwise.envs.types import Reseedable
        from headwise.training.evaluate import evaluate_loop, evaluation_seeds, fresh_seeds

        seeds = (
            evaluation_seeds(loop.keys, 0)
            if is_last
            else fresh_seeds(loop.keys, SCHEDULED, loop.env_steps)
        )
        if is_last and episodes != self._how.episodes:
            self.close()  # it may have other slots
        if self._env is not None and isinstance(self._env, Reseedable):
            self._env.reseed(seeds)
        else:
            self.close()
            self._env = self._made(seeds, episodes)
        result = evaluate_loop(loop, self._env, episodes, max_steps=self._how.max_steps)
        lengths = result.lengths.mean(axis=-1)
        self.found.append((loop.env_steps, _plain(result.scores), _plain(lengths)))

    def _made(self, seeds: list[int], episodes: int) -> VecEnv:
        from headwise.agent.world import World
        from headwise.study.environment import bare_id

        run = self._run
        settings = {**run.env_settings, "num_threads": self._threads}
        return World(bare_id(run.env), settings, run.view).few(seeds, run.num_envs, episodes)

    def values(self, step: int) -> dict[str, NDArray[np.float64]]:
        """What was measured at this step, (P,) by the names that agents have for it."""
        if not self.found or self.found[-1][0] != step:
            return {}
        _, returns, lengths = self.found[-1]
        named = {"eval/mean_return": returns, "eval/mean_ep_length": lengths}
        return {name: np.array(values, dtype=np.float64) for name, values in named.items()}

    def close(self) -> None:
        """Closes the environment."""
        if self._env is not None:
            self._env.close()
            self._env = None

    def scalars_of(self, member: int) -> dict[str, Any]:
        """What a member's result says of it: the mean return at the end, and all evaluations.

        What is not finite is None, as in all results.
        """
        return {
            "eval_return": self.found[-1][1][member],
            "evaluations": {
                "step": [step for step, _, _ in self.found],
                "return": [returns[member] for _, returns, _ in self.found],
                "length": [lengths[member] for _, _, lengths in self.found],
            },
        }


def _plain(values: NDArray[np.float64]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]
