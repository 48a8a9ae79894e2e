"""What flows from environments to learners: one type, the same for every kind of environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike, NDArray

from headwise.errors import ConfigError, EnvError
from headwise.spaces import ActionSpec, ObsSpec

Allocate: TypeAlias = Callable[[tuple[int, ...], DTypeLike], NDArray[Any]]


def check_allocate(allocate: object) -> None:
    """Refuses what makes no arrays."""
    if not callable(allocate):
        raise ConfigError(
            "allocate makes the arrays of an environment, as a function of a shape and a type",
            got=allocate,
            allowed="np.zeros, or a function like it",
            fix="Leave it out.",
        )


Leaves: TypeAlias = dict[str, NDArray[Any]]
"""The arrays that observations are made of, by their paths: a row for each slot."""


class LostEpisodesError(EnvError):
    """What was going on in every slot is over, and no step was taken; a reset begins anew."""


class Final(NamedTuple):
    """The true successors that are not what is acted on next: of slots that began anew."""

    slots: NDArray[np.intp]
    """Which slots, (n,)."""
    obs: Leaves
    """The last observations of their episodes, (n, ...)."""
    legal: NDArray[np.bool_] | None
    """Which options would have been legal there; None means all."""


class Step(NamedTuple):
    """What one step of all slots came to, a row for each slot, those of a member side by side.

    Observations are the environment's own arrays, in the types of its space; its next step
    overwrites them.
    """

    obs: Leaves
    """What to act on now: the successor, but for the slots of `final`."""
    reward: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    """False where no transition took place (the step in which a slot was only reset)."""
    final: Final | None
    legal: NDArray[np.bool_] | None
    """Which options are legal on `obs`, (N, H, K); None where none is given."""


class StepBatch(NamedTuple):
    """The result of one step of all slots, arrays of shape (P, E, ...): member, env slot.

    The arrays belong to the environment and are overwritten by its next step: copy them to keep
    them.
    """

    obs: NDArray[np.float32]
    """What to act on now, (P, E, O): after an episode's end the first observation of the next (or,
    where a step of its own does the reset and is not `valid`, the last one of the old)."""
    next_obs: NDArray[np.float32]
    """The true successor of the action just taken, (P, E, O), also at an episode's end."""
    reward: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    """The task came to its own end; nothing follows, so nothing is bootstrapped."""
    truncated: NDArray[np.bool_]
    """The episode was cut off from outside; what would have followed still has a value."""
    valid: NDArray[np.bool_]
    """False where no transition took place (the step in which a slot was only reset)."""
    episode_return: NDArray[np.float32]
    """Where an episode has ended: its undiscounted return."""
    episode_length: NDArray[np.int32]
    """Where an episode has ended: its number of steps."""
    legal: NDArray[np.bool_] | None = None
    """Which options may be chosen on `obs`, (P, E, H, K); None where the environment has no masks.
    The row of a Range is True throughout."""
    next_legal: NDArray[np.bool_] | None = None
    """`legal` on `next_obs`."""

    @classmethod
    def of_shape(
        cls, num_members: int, num_slots: int, obs_size: int, allocate: Allocate = np.zeros
    ) -> StepBatch:
        """Arrays for a batch, made by `allocate` for those who want them in pinned memory."""
        rows, obs = (num_members, num_slots), (num_members, num_slots, obs_size)
        shapes = (obs, obs, *[rows] * 6)
        kinds = (*[np.float32] * 3, *[np.bool_] * 3, np.float32, np.int32)
        return cls(*map(allocate, shapes, kinds))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that is there, by name."""
        return {name: array for name, array in self._asdict().items() if array is not None}

    def flat(self) -> StepBatch:
        """The same arrays with one axis for all slots of all members, (P * E, ...)."""
        return StepBatch(**{n: x.reshape(-1, *x.shape[2:]) for n, x in self.arrays().items()})


class VecEnv(Protocol):
    """What the training loop needs of an environment: P members with E slots each.

    Actions are in the learner's form, float32 (P, E, H): the number of an option for a Choice, and
    for a Range a number from -1 to 1 that spans it.
    """

    num_members: int
    num_slots: int
    spec: ActionSpec
    obs_spec: ObsSpec

    @property
    def can_snapshot(self) -> bool:
        """Whether a run can be resumed exactly; if not, `snapshot` and `restore` raise EnvError."""

    @property
    def first_legal(self) -> NDArray[np.bool_] | None:
        """The mask (P, E, H, K) of the observations that `reset` returned; None without masks.

        In each step it is `StepBatch.legal`.
        """
        return None

    @property
    def is_taken(self) -> bool:
        """Whether another owner has begun episodes in what it steps, so that its own are over.

        That happens to an environment that was handed over made and is the only one there is.
        """
        return False

    def reset(self) -> NDArray[np.float32]:
        """Starts an episode in every slot; returns the observations (P, E, O)."""

    def step(self, action: NDArray[np.float32]) -> StepBatch:
        """One step of every slot; a LostEpisodesError if there was none and `reset` must come."""

    def snapshot(self) -> bytes:
        """The whole state, randomness included, so that a run can go on as if uninterrupted."""

    def restore(self, snapshot: bytes) -> None:
        """Goes back to a snapshot."""

    def close(self) -> None:
        """Lets go of whatever the environment holds."""


class Compiled(NamedTuple):
    """An environment that compiled learners step without Python, its property `compiled`."""

    port: object
    """What they step it by."""
    batch: StepBatch
    """The arrays that its steps are in."""


@runtime_checkable
class Restable(Protocol):
    """An environment whose slots need not all be stepped."""

    def rest(self, slots: NDArray[np.bool_]) -> None:
        """Lets slots (P, E) alone from now on, and goes on with all others."""


@runtime_checkable
class Reseedable(Protocol):
    """An environment that can begin anew by other seeds, where there is no making a second one."""

    def reseed(self, seeds: Sequence[int]) -> None:
        """Lets the next `reset` begin the randomness of every slot anew, by its member's seed."""
