"""Any number of ticks as one compiled call, where the learner and its environment are compiled."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.algorithms.base import Acting, Algorithm
from headwise.envs.types import Compiled, VecEnv
from headwise.ops import Buffer, Recorded
from headwise.ops.collect import step_env, to_heads, write_rows
from headwise.training.binning import Binning
from headwise.training.episodes import Episodes
from headwise.training.rollout import Rollout
from headwise.training.transition import MASKS

WORTH_THREADS = 1_000_000
"""Products that a member takes to act in all its slots; with fewer, threads wait for each other."""


class CompiledRollout:
    """Acts, steps and remembers: the same as ticks of the loop, to the bit.

    Args:
        env: The environment.
        acting: How the learner acts.
        binning: What it makes of Range heads.
        memory: Where steps go; it has taken in one before.
        parameters: How many numbers a member acts by, roughly.
    """

    def __init__(
        self, env: Compiled, acting: Acting, binning: Binning, memory: Rollout, parameters: int
    ) -> None:
        self.env, self.acting, self._memory = env, acting, memory
        step = env.batch
        shape = *step.reward.shape, acting.layout.spec.num_heads
        self._action, self._heads = (np.zeros(shape, dtype=np.float32) for _ in range(2))
        self._units = binning.units()
        rows = step.reward.shape[0], memory.length, step.reward.shape[1]
        self._returns = np.zeros(rows, dtype=np.float32)
        self._lengths = np.zeros(rows, dtype=np.int32)
        self._cursor = Buffer(rows[0], 1, 2)
        self._is_long = parameters * rows[2] >= WORTH_THREADS
        self._ticks = Recorded(self._tick, "cpu")

    def run(self, ticks: float, obs: Tensor) -> None:
        """So many ticks, at least one, or as many as there is room for.

        Args:
            ticks: How many.
            obs: What to act on first, (P, E, O); becomes what to act on next.
        """
        room = self._memory.length - self._memory.size
        self._cursor.longs.fill_(self._memory.size)
        self.acting.see(obs)
        threads = torch.get_num_threads() if self._is_long else 1
        self._ticks(max(math.ceil(min(ticks, room)), 1), threads)
        obs.copy_(torch.from_numpy(self.env.batch.obs))

    def take_in(self, episodes: Episodes, env_steps: int) -> int:
        """Counts the ticks of the last run, which ended early if a step failed.

        Args:
            episodes: Takes note of the episodes that ended.
            env_steps: What each member had taken before.

        Returns:
            How many ticks they were.
        """
        first, end = self._memory.size, int(self._cursor.longs.min())
        self._memory.count(end - first)
        kept, some = self._memory.arrays, slice(first, end)
        ended = (kept["terminated"][:, some] | kept["truncated"][:, some]).swapaxes(0, 1)
        tick, member, slot = ended.nonzero()
        if len(tick):
            where = member, first + tick, slot
            steps = env_steps + (tick + 1) * ended.shape[2]
            episodes.append(steps, member, self._returns[where], self._lengths[where])
        return end - first

    def _tick(self) -> None:
        acting, step, kept = self.acting, self.env.batch, self._memory.arrays
        acting.act()
        to_heads(
            acting.unit,
            action=self._action,
            heads=self._heads,
            source=acting.layout.places,
            joint=None if acting.layout.joint is None else acting.layout.joint.heads,
            units=self._units,
        )
        step_env(self.env.port, self._heads)
        seen = _rows(acting.obs)
        found = {"obs": seen, "action": self._action}
        found |= {f"extra_{name}": _rows(x) for name, x in acting.extra.items()}
        names = "reward", "next_obs", "terminated", "truncated", "valid"
        found |= {name: getattr(step, name) for name in names}
        assert set(found) == set(kept)
        pairs = [(x, kept[name]) for name, x in found.items()]
        pairs += [(step.episode_return, self._returns), (step.episode_length, self._lengths)]
        write_rows(pairs, self._cursor)
        write_rows([(step.obs, seen)])


def compiled_rollout(
    env: VecEnv,
    algorithm: Algorithm,
    binning: Binning,
    memory: Rollout,
    known: CompiledRollout | None,
) -> CompiledRollout | None:
    """The one that is known, or another if it is of other buffers; None where there can be none.

    Memory is allocated by the first step, which is an ordinary tick. Where it has room for masks,
    all steps are.
    """
    compiled = getattr(env, "compiled", None)
    acting = getattr(algorithm, "compiled_acting", lambda: None)()
    if compiled is None or acting is None or not memory.arrays or set(MASKS) & set(memory.arrays):
        return None
    if known is not None and known.env is compiled and known.acting.obs is acting.obs:
        return known
    return CompiledRollout(compiled, acting, binning, memory, algorithm.num_parameters)


def _rows(x: Buffer) -> NDArray[np.float32]:
    """A buffer of one copy as an array (P, E, ...)."""
    return x.tensor[:, 0].numpy()
