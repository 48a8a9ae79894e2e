"""Ticks of compiled calls: acting is one, and remembering another.

All ticks of a rollout are a single one where the environment is compiled too.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.algorithms.base import Acted, Acting, Algorithm
from headwise.envs.types import Compiled, StepBatch, VecEnv
from headwise.ops import Buffer, Recorded
from headwise.ops.collect import step_env, to_heads, write_rows
from headwise.ops.threads import member_threads
from headwise.spaces.bins import Binning
from headwise.training.episodes import Episodes
from headwise.training.memory import Memory
from headwise.training.rollout import Rollout
from headwise.training.transition import MASKS

WORTH_THREADS = 1_000_000
"""Products that a member takes to act in all its slots; with fewer, threads wait for each other."""
Pairs: TypeAlias = list[tuple[NDArray[Any], NDArray[Any]]]
"""What is copied, and where."""
_BATCHES = 2
"""An environment may have as many sets of arrays that its steps are in."""


class CompiledTicks:
    """Acts and remembers, where no option is ever illegal: what the loop does, to the bit.

    Args:
        acting: How the learner acts.
        obs: What to act on next, (P, E, O), always in the same place.
        binning: What the learner makes of Range heads.
        memory: Where steps go, if it is a rollout; it has taken in one before.
        env: The environment, if it is compiled.
        parameters: How many numbers a member acts by, roughly.
    """

    def __init__(
        self,
        acting: Acting,
        obs: Tensor,
        binning: Binning,
        memory: Rollout | None,
        env: Compiled | None,
        parameters: int,
    ) -> None:
        self.acting, self.obs, self.env = acting, obs, env
        self._memory = Rollout(1) if memory is None else memory
        self.arrays = self._memory.arrays
        self.own = acting, obs, env, None if memory is None else self.arrays
        """What it is made for."""
        self._units = binning.units()
        members, slots = obs.shape[:2]
        shape = members, slots, acting.layout.spec.num_heads
        self._action, self._heads = (np.zeros(shape, dtype=np.float32) for _ in range(2))
        extra = {name: x.tensor[:, 0] for name, x in acting.extra.items()}
        self.acted = Acted(torch.from_numpy(self._action), extra)
        """What was done last, always in the same place."""
        self._told = torch.from_numpy(self._heads)
        self._cursor = Buffer(members, 1, 2)
        self._rows = self._cursor.longs.numpy()
        self._returns = np.zeros((members, self._memory.length, slots), dtype=np.float32)
        self._lengths = np.zeros(self._returns.shape, dtype=np.int32)
        self._is_long = parameters * slots >= WORTH_THREADS
        self._act, self._ticks = Recorded(self._act_once, "cpu"), Recorded(self._tick, "cpu")
        self._writing: list[tuple[StepBatch, Recorded | None]] = []

    def act(self) -> Tensor:
        """Acts; returns the action as the environment takes it, (P, E, H)."""
        if self.acting.masked:  # options that may never be chosen, whatever others have asked for
            self.acting.see(self.obs)
        self._act()
        return self._told

    def remember(self, acted: Acted, step: StepBatch) -> bool:
        """Writes down what came of `act`, and takes in what to act on next.

        False, and nothing done, where it was not that which was done, where there are masks, and
        where arrays are of other types, or others at every step.
        """
        if acted is not self.acted or step.legal is not None or not self.arrays:
            return False
        known = [writing for batch, writing in self._writing if batch is step]
        if not known and len(self._writing) < _BATCHES:
            known = [self._writing_of(step)]
            self._writing.append((step, known[0]))
        if not known or known[0] is None:
            return False
        self._rows[:] = self._memory.size
        known[0]()
        return True

    def run(self, ticks: float) -> None:
        """So many ticks in the compiled environment, at least one, as far as there is room."""
        room = self._memory.length - self._memory.size
        self._rows[:] = self._memory.size
        if self.acting.masked:
            self.acting.see(self.obs)
        threads = member_threads() if self._is_long else 1
        self._ticks(max(math.ceil(min(ticks, room)), 1), threads)

    def take_in(self, episodes: Episodes, env_steps: int) -> int:
        """Counts the ticks of the last run, which ended early if a step failed.

        Args:
            episodes: Takes note of the episodes that ended.
            env_steps: What each member had taken before.

        Returns:
            How many ticks they were.
        """
        first, end = self._memory.size, int(self._rows.min())
        self._memory.count(end - first)
        kept, some = self.arrays, slice(first, end)
        ended = (kept["terminated"][:, some] | kept["truncated"][:, some]).swapaxes(0, 1)
        tick, member, slot = ended.nonzero()
        if len(tick):
            where = member, first + tick, slot
            steps = env_steps + (tick + 1) * ended.shape[2]
            episodes.append(steps, member, self._returns[where], self._lengths[where])
        return end - first

    # --- what is recorded -----------------------------------------------------------------------

    def _act_once(self) -> None:
        acting = self.acting
        write_rows([(self.obs.numpy(), _rows(acting.obs))])
        acting.act()
        to_heads(
            acting.unit,
            action=self._action,
            heads=self._heads,
            source=acting.layout.places,
            joint=None if acting.layout.joint is None else acting.layout.joint.heads,
            units=self._units,
        )

    def _tick(self) -> None:
        assert self.env is not None
        self._act_once()
        step_env(self.env.port, self._heads)
        step = self.env.batch
        pairs = self._pairs(step)
        pairs += (step.episode_return, self._returns), (step.episode_length, self._lengths)
        self._write(step, pairs)

    def _writing_of(self, step: StepBatch) -> Recorded | None:
        pairs = self._pairs(step)
        alike = all(x.dtype == y.dtype and x[0].flags.c_contiguous for x, y in pairs)
        if not alike or step.obs.dtype != np.float32 or not step.obs[0].flags.c_contiguous:
            return None
        return Recorded(partial(self._write, step, pairs), "cpu")

    def _pairs(self, step: StepBatch) -> Pairs:
        """What is remembered of a step, and where."""
        found = {"obs": _rows(self.acting.obs), "action": self._action}
        found |= {f"extra_{name}": _rows(x) for name, x in self.acting.extra.items()}
        names = "reward", "next_obs", "terminated", "truncated", "valid"
        found |= {name: getattr(step, name) for name in names}
        assert set(found) == set(self.arrays)
        return [(x, self.arrays[name]) for name, x in found.items()]

    def _write(self, step: StepBatch, pairs: Pairs) -> None:
        write_rows(pairs, self._cursor)
        write_rows([(step.obs, self.obs.numpy())])


def compiled_ticks(
    env: VecEnv,
    algorithm: Algorithm,
    obs: Tensor | None,
    binning: Binning,
    memory: Memory | None,
    known: CompiledTicks | None,
) -> CompiledTicks | None:
    """Those that are known, or others if they are of other buffers; None where there can be none.

    A rollout is allocated by the first step, which is an ordinary tick. Where it has room for
    masks, all steps are. Of replay, or without a memory, only acting is compiled.
    """
    acting = getattr(algorithm, "compiled_acting", lambda: None)()
    if acting is None or obs is None:
        return None
    rollout = memory if isinstance(memory, Rollout) else None
    here = None if rollout is None else getattr(env, "compiled", None)
    own = acting, obs, here, None if rollout is None else rollout.arrays
    if known is not None and all(x is y for x, y in zip(known.own, own, strict=True)):
        return known
    if rollout is not None and not (rollout.arrays and rollout.arrays.keys().isdisjoint(MASKS)):
        return None
    return CompiledTicks(acting, obs, binning, rollout, here, algorithm.num_parameters)


def _rows(x: Buffer) -> NDArray[np.float32]:
    """A buffer of one copy as an array (P, E, ...)."""
    return x.tensor[:, 0].numpy()
