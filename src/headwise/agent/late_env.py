"""An environment that is made only when someone steps it, or never."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from headwise.envs.types import Compiled, Reseedable, StepBatch, VecEnv
from headwise.errors import EnvError
from headwise.spaces import ActionSpec, ObsSpec


class LateEnv:
    """What a learner must know of its environment, and the environment itself when it is needed.

    An agent that is only asked for actions needs no environment; one that was loaded without any
    can still give them.

    Args:
        num_members: Members (P).
        num_slots: Slots of each (E).
        spec: Its action.
        obs_spec: Its observation.
        make: Makes the environment, or raises an EnvError where there is none to make.
        is_lent: Whether what `make` gives is another's, who closes it.
        left: The state in which it was closed.
    """

    def __init__(
        self,
        num_members: int,
        num_slots: int,
        spec: ActionSpec,
        obs_spec: ObsSpec,
        make: Callable[[], VecEnv],
        *,
        is_lent: bool = False,
        left: bytes | None = None,
    ) -> None:
        self.num_members, self.num_slots = num_members, num_slots
        self.spec, self.obs_spec = spec, obs_spec
        self._make = make
        self._is_lent = is_lent
        self._env: VecEnv | None = None
        self._left = left

    @property
    def can_snapshot(self) -> bool:
        """Whether the environment is there and can be kept, or was when it was closed."""
        return self._left is not None or (self._env is not None and self._env.can_snapshot)

    @property
    def first_legal(self) -> NDArray[np.bool_] | None:
        """The mask of the observations that `reset` returned, if there is one."""
        return None if self._env is None else self._env.first_legal

    @property
    def is_taken(self) -> bool:
        """Whether somebody else has begun episodes in it."""
        return self._env is not None and self._env.is_taken

    @property
    def compiled(self) -> Compiled | None:
        """How compiled learners step it; None before it is made."""
        return None if self._env is None else getattr(self._env, "compiled", None)

    def reseed(self, seeds: Sequence[int]) -> None:
        """Lets the next `reset` begin the randomness of every slot anew, by its member's seed."""
        env = self.opened()
        assert isinstance(env, Reseedable)
        env.reseed(seeds)

    def reset(self) -> NDArray[np.float32]:
        """Makes the environment if need be, and starts an episode in every slot."""
        return self.opened().reset()

    def step(self, action: NDArray[np.float32]) -> StepBatch:
        """One step of every slot."""
        return self.opened().step(action)

    def snapshot(self) -> bytes:
        """The whole state of the environment."""
        return self.opened().snapshot() if self._left is None else self._left

    def restore(self, snapshot: bytes) -> None:
        """Goes back to a snapshot."""
        self.opened().restore(snapshot)

    def close(self) -> None:
        """Lets go of the environment."""
        if self._env is not None and not self._is_lent:
            self._env.close()

    def opened(self) -> VecEnv:
        """The environment, made now if need be."""
        if self._env is None:
            self._env = self._make()
        return self._env


def closed(env: VecEnv, *, keep: bool) -> LateEnv:
    """Closes an environment; what is left has its state, if that is to be kept and can be."""
    left = None
    if keep and env.can_snapshot:
        with suppress(Exception):  # it may be broken, which is a reason to let go of it
            left = env.snapshot()
    env.close()

    def make() -> VecEnv:
        raise EnvError(
            "this agent was closed, and its environment with it",
            fix="Save it and load it again: Agent.load(path), or Agent.load(path, env=...).",
        )

    return LateEnv(env.num_members, env.num_slots, env.spec, env.obs_spec, make, left=left)
