"""What all probe environments share: the schedule of episodes, the steps, the snapshots.

A probe observes one number. Which episode a slot plays next is a fixed schedule, so that nothing is
left to chance but the learner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwise.envs.types import Allocate, StepBatch
from headwise.errors import EnvError, SpaceError
from headwise.registry import Registry
from headwise.spaces import ActionSpec, Choice, ObsSpec

Floats: TypeAlias = NDArray[np.float32]

Episodes: TypeAlias = tuple[tuple[float, ...], ...]

probes: Registry[type[Probe]] = Registry("probe")


@dataclass(frozen=True)
class Known:
    """What is known of a probe without learning anything."""

    best_return: float
    """The mean return of the best policy."""
    random_return: float
    """The mean return of uniformly random actions."""


class Probe:
    """The engine of all probes; a subclass says what is observed, what it earns and what is right.

    Args:
        seeds: One seed for each member; it shifts the schedule of episodes.
        num_slots: Environment slots of each member.
        num_threads: Not needed here; taken so that every environment takes it.
        allocate: Makes the arrays, for those who want them in pinned memory.
    """

    can_snapshot: ClassVar[bool] = True
    first_legal: ClassVar[None] = None
    is_taken: ClassVar[bool] = False
    spec: ActionSpec = ActionSpec.of([Choice(2)])
    episodes: ClassVar[Episodes] = ((0.0,),)
    """What is observed in each kind of episode, step by step; the kinds take turns."""
    ends_by: ClassVar[Literal["termination", "truncation"]] = "termination"
    known: ClassVar[Known]

    def __init__(
        self,
        seeds: Sequence[int],
        num_slots: int,
        *,
        num_threads: int | None = None,
        allocate: Allocate = np.zeros,
    ) -> None:
        self.num_members, self.num_slots = len(seeds), num_slots
        if not len(seeds) or num_slots < 1:
            raise EnvError(
                f"{type(self).__name__}: there must be a member and a slot",
                got=f"{len(seeds)} members with {num_slots} slots",
            )
        self.obs_spec = ObsSpec.flat(1)
        self._table = np.array(self.episodes, dtype=np.float32)
        kinds = len(self._table)
        first_P1 = np.array([seed % kinds for seed in seeds])[:, None]
        self._schedule = (first_P1 + np.arange(num_slots)) % kinds
        self._kind = self._schedule.copy()
        self._time = np.zeros_like(self._kind)
        self._batch = StepBatch.of_shape(self.num_members, num_slots, 1, allocate)
        self._batch.valid[...] = True
        self._started = False

    @staticmethod
    def reward(obs: Floats, heads: Floats) -> Floats:
        """What an action earns, (...): of observations (...) and native head values (..., H)."""
        raise NotImplementedError

    @staticmethod
    def best_action(obs: Floats) -> Floats:
        """One of the best actions for observations (...), in the learner's form (..., H)."""
        raise NotImplementedError

    @classmethod
    def best_reward(cls, obs: Floats) -> Floats:
        """The most that an action can earn for observations (...)."""
        return cls.reward(obs, cls.native(cls.best_action(obs)))

    @classmethod
    def regret(cls, obs: ArrayLike, action: ArrayLike) -> Floats:
        """What actions (..., H) in the learner's form earn less than the best: 0 is right."""
        obs = np.asarray(obs, dtype=np.float32)
        return cls.best_reward(obs) - cls.reward(obs, cls.native(action))

    @classmethod
    def values(cls, gamma: float) -> dict[float, float]:
        """The value of every observation under the best policy, discounted by `gamma`."""
        known: dict[float, float] = {}
        for episode in cls.episodes:
            earned = cls.best_reward(np.array(episode, dtype=np.float32))
            # Cut off from outside, a probe would have gone on like this for ever.
            after = float(earned[-1]) / (1.0 - gamma) if cls.ends_by == "truncation" else 0.0
            for obs, reward in zip(reversed(episode), reversed(earned), strict=True):
                known[obs] = after = float(reward) + gamma * after
        return known

    @classmethod
    def native(cls, action: ArrayLike) -> Floats:
        """Actions (..., H) in the learner's form with every Range in its own units."""
        action = np.asarray(action, dtype=np.float32)
        ranges = cls.spec.low + (action + 1.0) * 0.5 * (cls.spec.high - cls.spec.low)
        return np.where(cls.spec.is_choice, action, ranges).astype(np.float32)

    def reset(self) -> Floats:
        """Starts an episode in every slot; returns the observations (P, E, 1)."""
        self._time[...] = 0
        self._batch.episode_return[...] = 0.0
        self._batch.obs[..., 0] = self._observed()
        self._started = True
        return self._batch.obs

    def step(self, action: Floats) -> StepBatch:
        """One step of every slot, with actions (P, E, H) in the learner's form."""
        if not self._started:
            raise EnvError(f"{type(self).__name__}: step before reset", fix="Call reset() first.")
        shape = (self.num_members, self.num_slots, self.spec.num_heads)
        if action.shape != shape:
            raise EnvError(
                f"{type(self).__name__}: actions of the wrong shape", got=action.shape,
                allowed=str(shape),
            )  # fmt: skip
        heads = self.native(action)
        try:
            self.spec.check(heads)
        except SpaceError as error:
            message = str(error).removesuffix(".")
            raise EnvError(f"{type(self).__name__}: {message}") from None
        batch = self._batch
        ended = self._time == self._table.shape[1] - 1
        batch.episode_return[...] *= self._time > 0  # what ended is forgotten by the next step
        batch.reward[...] = self.reward(batch.obs[..., 0], heads)
        batch.episode_return[...] += batch.reward
        batch.episode_length[...] = self._time + 1
        batch.terminated[...] = ended & (self.ends_by == "termination")
        batch.truncated[...] = ended & (self.ends_by == "truncation")
        # The successor of the last observation is that observation.
        self._time = np.where(ended, self._time, self._time + 1)
        batch.next_obs[..., 0] = self._observed()
        self._time = np.where(ended, 0, self._time)
        self._kind = np.where(ended, (self._kind + 1) % len(self._table), self._kind)
        batch.obs[..., 0] = self._observed()
        return batch

    def snapshot(self) -> bytes:
        """The whole state of every slot."""
        state = np.stack([self._kind, self._time]).astype("<i4")
        return self._signature() + state.tobytes() + self._batch.episode_return.tobytes()

    def restore(self, snapshot: bytes) -> None:
        """Goes back to a snapshot; what follows is equal to the bit."""
        signature, size = self._signature(), self._kind.size
        if not snapshot.startswith(signature) or len(snapshot) != len(signature) + 12 * size:
            raise EnvError("the snapshot is of another environment", allowed=repr(signature))
        numbers = np.frombuffer(snapshot, "<i4", 2 * size, len(signature))
        kind, time = numbers.reshape(2, *self._kind.shape).astype(self._kind.dtype)
        kinds, steps = self._table.shape
        if not ((kind >= 0) & (kind < kinds) & (time >= 0) & (time < steps)).all():
            raise EnvError("the snapshot is damaged", fix="Take another one.")
        self._kind, self._time = kind, time
        returns = np.frombuffer(snapshot, "<f4", size, len(signature) + 8 * size)
        self._batch.episode_return[...] = returns.reshape(self._kind.shape)
        self._batch.obs[..., 0] = self._observed()
        self._started = True

    def close(self) -> None:
        """Nothing is held that outlives the object."""

    def _observed(self) -> Floats:
        observed: Floats = self._table[self._kind, self._time]
        return observed

    def _signature(self) -> bytes:
        shape = f"{self.num_members}/{self.num_slots}"
        return f"headwise/probe/{type(self).__name__}/1/{shape}\n".encode()
