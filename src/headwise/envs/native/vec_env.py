"""Our compiled environments as the training loop sees them: a population in one call per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.engine import Autoreset, Engine
from headwise.envs.types import Allocate, Compiled, StepBatch
from headwise.spaces import ObsSpec


class NativeVecEnv:
    """A compiled environment for P members with E slots each.

    The randomness of a slot is a function of its member's seed and its number alone, so a member
    sees the same episodes alone and in any population.

    Args:
        name: The environment, for example "HybridShoot".
        seeds: One seed for each member.
        num_slots: Environment slots of each member.
        max_episode_steps: The time limit; None takes the environment's own.
        num_threads: Threads for large numbers of slots; None takes one for each core.
        allocate: Makes the arrays, for those who want them in pinned memory.
        **settings: Settings of the environment.
    """

    can_snapshot: ClassVar[bool] = True
    first_legal: ClassVar[None] = None
    is_taken: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        seeds: Sequence[int],
        num_slots: int,
        /,
        *,
        max_episode_steps: int | None = None,
        num_threads: int | None = None,
        allocate: Allocate = np.zeros,
        **settings: Any,
    ) -> None:
        self.num_members = len(seeds)
        self.num_slots = num_slots
        self._engine = Engine(
            name,
            self.num_members * num_slots,
            settings,
            max_episode_steps=max_episode_steps,
            autoreset=Autoreset.SAME_STEP,
            num_threads=num_threads,
            allocate=allocate,
        )
        self.reseed(seeds)
        self.spec = self._engine.spec
        self.obs_spec = ObsSpec.flat(self._engine.obs.shape[1])
        self._batch = StepBatch(
            obs=self._by_member(self._engine.obs),
            next_obs=self._by_member(self._engine.next_obs),
            reward=self._by_member(self._engine.reward),
            terminated=self._by_member(self._engine.terminated),
            truncated=self._by_member(self._engine.truncated),
            valid=np.ones((self.num_members, num_slots), dtype=np.bool_),
            episode_return=self._by_member(self._engine.episode_return),
            episode_length=self._by_member(self._engine.episode_length),
        )
        self._compiled = Compiled(self._engine.port(), self._batch)

    @property
    def compiled(self) -> Compiled | None:
        """How compiled learners step it, unless its step was replaced."""
        is_own = type(self).step is NativeVecEnv.step and "step" not in vars(self)
        return self._compiled if is_own else None

    def reseed(self, seeds: Sequence[int]) -> None:
        """Lets the next `reset` begin the randomness of every slot anew, by its member's seed."""
        self._engine.seed(
            np.repeat(np.asarray(seeds, dtype=np.uint64), self.num_slots),
            np.tile(np.arange(self.num_slots, dtype=np.uint32), self.num_members),
        )

    def reset(self) -> NDArray[np.float32]:
        """Starts an episode in every slot; returns the observations (P, E, O)."""
        self._engine.reset()
        return self._batch.obs

    def step(self, action: NDArray[np.float32]) -> StepBatch:
        """One step of every slot, with actions (P, E, H) in the learner's form."""
        self._engine.step_units(action)
        return self._batch

    def snapshot(self) -> bytes:
        """The whole state of every slot, randomness included."""
        return self._engine.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Goes back to a snapshot; what follows is equal to the bit."""
        self._engine.restore(snapshot)

    def close(self) -> None:
        """Nothing is held that outlives the object."""

    def _by_member(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.reshape(self.num_members, self.num_slots, *array.shape[1:])
