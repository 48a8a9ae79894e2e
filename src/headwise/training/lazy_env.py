"""The environment of a run, made only when it is first stepped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from headwise.envs.types import VecEnv
from headwise.errors import EnvError
from headwise.spaces import ActionSpec, ObsSpec


class LazyEnv:
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
    ) -> None:
        self.num_members, self.num_slots = num_members, num_slots
        self.spec, self.obs_spec = spec, obs_spec
        self.made: VecEnv | None = None
        """The environment, if it was made and not closed."""
        self._make, self._is_lent = make, is_lent
        self._left: bytes | None = None  # the state in which it was closed

    @classmethod
    def of(cls, env: VecEnv) -> LazyEnv:
        """An environment that is there already."""
        lazy = cls(env.num_members, env.num_slots, env.spec, env.obs_spec, lambda: env)
        lazy.made = env
        return lazy

    def opened(self) -> VecEnv:
        """The environment, made now if need be."""
        if self.made is None:
            self.made = self._make()
        return self.made

    @property
    def is_taken(self) -> bool:
        """Whether another loop has begun episodes in it."""
        return self.made is not None and self.made.is_taken

    @property
    def can_snapshot(self) -> bool:
        """Whether the environment is there and can be kept, or was when it was closed."""
        return self._left is not None or (self.made is not None and self.made.can_snapshot)

    def snapshot(self) -> bytes:
        """Its whole state, as it is or as it was when it was closed."""
        return self.opened().snapshot() if self._left is None else self._left

    def close(self, *, keep: bool) -> None:
        """Lets go of the environment; its state stays, if that is to be kept and can be."""
        if self.made is not None:
            if keep and self.made.can_snapshot:
                with suppress(Exception):  # it may be broken, which is a reason to let go of it
                    self._left = self.made.snapshot()
            if not self._is_lent:
                self.made.close()
        self.made, self._make = None, _closed


def _closed() -> VecEnv:
    raise EnvError(
        "this agent was closed, and its environment with it",
        fix="Save it and load it again: Agent.load(path), or Agent.load(path, env=...).",
    )
