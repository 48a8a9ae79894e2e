"""Landers as the training loop sees them: a population flown in one pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from headwise.envs.lander import CLOSED, ENGINES, checked_limit, naming_lander, refusal
from headwise.envs.lander_pool import OBS_SIZE, Backend, open_pool
from headwise.envs.types import Allocate, StepBatch
from headwise.errors import EnvError
from headwise.spaces import ObsSpec, View, ViewKind, bin_values

_NONE = np.empty(0, dtype=np.float32)
_NO_SNAPSHOT = "Lander cannot be resumed exactly: the physics engine keeps its state to itself"
_INSTEAD = (
    "Look at `can_snapshot` first; without one, restore the learner, call reset() and go on from "
    "new episodes."
)


class LanderVecEnv:
    """Landers for P members with E slots each, as the training loop sees them.

    All are flown in one pool. The seed of a slot is a random word made of its member's seed and its
    number alone, so a member sees the same episodes alone and in any population. A slot whose
    episode has ended is reset by the next step, which ignores its action: there `valid` is False.

    Args:
        seeds: One seed for each member.
        num_slots: Landers of each member.
        view: "discrete", "hybrid" or "continuous".
        bins: Bins of an engine that is discrete.
        max_episode_steps: The time limit; None means 1000 steps, 0 or -1 no limit.
        backend: "envpool", "gymnasium", or "auto": EnvPool where it is installed.
        num_threads: Threads of EnvPool; None leaves it to EnvPool.
        allocate: Makes the arrays, for those who want them in pinned memory.
    """

    can_snapshot: ClassVar[bool] = False
    first_legal: ClassVar[None] = None
    is_taken: ClassVar[bool] = False

    def __init__(
        self,
        seeds: Sequence[int],
        num_slots: int,
        *,
        view: ViewKind = "hybrid",
        bins: int = 3,
        max_episode_steps: int | None = None,
        backend: Backend = "auto",
        num_threads: int | None = None,
        allocate: Allocate = np.zeros,
    ) -> None:
        self.num_members, self.num_slots = len(seeds), num_slots
        self.obs_spec = ObsSpec.flat(OBS_SIZE)
        self._view = View(ENGINES, view, bins=bins)
        self.spec = self._view.spec
        self._num_landers = len(seeds) * num_slots
        self._pool = open_pool(
            backend,
            self._num_landers,
            max_episode_steps=checked_limit(max_episode_steps),
            num_threads=num_threads,
        )
        self._pool.seed(slot_seeds(seeds, num_slots))
        self._batch = StepBatch.of_shape(self.num_members, num_slots, OBS_SIZE, allocate)
        self._rows = self._batch.flat()
        self._binned = self.spec.num_choices
        self._powers = bin_values(-1.0, 1.0, bins).astype(np.float32) if self._binned else _NONE
        self._needs = "Lander: step before reset"

    def reset(self) -> NDArray[np.float32]:
        """Starts an episode in every slot; returns the observations (P, E, 8)."""
        if self._needs == CLOSED:
            raise refusal(CLOSED)
        self._rows.obs[...] = self._pool.reset(np.arange(self._num_landers, dtype=np.int32))
        self._batch.episode_return[...] = 0.0
        self._needs = ""
        return self._batch.obs

    def step(self, action: NDArray[np.float32]) -> StepBatch:
        """One step of every slot, with actions (P, E, H) in the learner's form."""
        if self._needs:
            raise refusal(self._needs)
        out = self._pool.step(self._engines(action.reshape(self._num_landers, -1)))
        rows = self._rows
        rows.obs[...] = out.obs
        rows.next_obs[...] = out.obs
        rows.reward[...] = out.reward
        rows.terminated[...] = out.terminated
        rows.truncated[...] = out.truncated
        rows.episode_length[...] = out.elapsed
        np.greater(out.elapsed, 0, out=rows.valid)
        np.add(rows.episode_return, out.reward, out=rows.episode_return)
        np.multiply(rows.episode_return, rows.valid, out=rows.episode_return)
        return self._batch

    def _engines(self, heads: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the learner chose as the power of both engines, (n, 2).

        `View.to_native` says the same and names what is wrong, but takes longer than flying a
        lander; so it is asked only when something is wrong.
        """
        # Both engines span -1 to 1, so the learner's unit of a Range is its value.
        engines, good = heads, heads.shape[-1] == ENGINES.num_heads
        if good and self._binned:
            engines = heads.copy()
            options = heads[:, : self._binned]
            good = bool((options >= 0.0).all() and (options < len(self._powers)).all())
            if good:
                index = options.astype(np.intp)
                good = bool((index == options).all())
                engines[:, : self._binned] = self._powers[index]
        if not good or not (np.abs(engines) <= 1.0).all():
            with naming_lander():
                engines = self._view.to_native(heads).astype(np.float32)
        return np.ascontiguousarray(engines, dtype=np.float32)

    def snapshot(self) -> bytes:
        """Refused: neither Box2D nor EnvPool can write down its state."""
        raise EnvError(_NO_SNAPSHOT, fix=_INSTEAD)

    def restore(self, snapshot: bytes) -> None:
        """Refused: neither Box2D nor EnvPool can write down its state."""
        raise EnvError(_NO_SNAPSHOT, fix=_INSTEAD)

    def close(self) -> None:
        """Lets go of threads and windows."""
        self._pool.close()
        self._needs = CLOSED


def slot_seeds(seeds: Sequence[int], num_slots: int, begun: int = 0) -> list[int]:
    """A 32-bit seed for each slot of each member, a function of the member's seed and the slot.

    Args:
        seeds: The members' seeds.
        num_slots: Slots of each.
        begun: How often the environments had to be made anew, so that other episodes come then.
    """
    from headwise import _core

    slots = range(num_slots)
    return [_core.philox([slot, begun, 0, 0], seed)[0] for seed in seeds for slot in slots]
