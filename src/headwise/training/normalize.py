"""Observations and rewards of a common size, by what each member has seen so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from headwise.algorithms.base import ReplayBatch
from headwise.checks import plain
from headwise.errors import ConfigError
from headwise.spaces import ObsPrior, ObsSpec
from headwise.spaces.observation import numbers_beside
from headwise.training.running_moments import RunningMoments
from headwise.training.scaling import EPSILON, Scaling
from headwise.training.transition import Transition

NormalizeObs: TypeAlias = bool | Literal["auto"]
"""Whether observations are normalized; "auto" begins with what their space says."""
STEPS_BETWEEN = 256
"""Steps of the vector environment after which what was seen counts, for replay."""


def chosen(normalize_obs: NormalizeObs, obs_spec: ObsSpec) -> NormalizeObs:
    """The same, without an "auto" where there is nothing to do, or where environments say so."""
    if normalize_obs == "auto" and (obs_spec.prior is None or obs_spec.prior.says_nothing):
        return False
    return normalize_obs


def prior_of(normalize_obs: NormalizeObs, obs_spec: ObsSpec) -> ObsPrior | None:
    """What is known of observations beforehand, for those who ask for that."""
    if normalize_obs != "auto":
        return None
    return obs_spec.prior or ObsPrior.unknown(obs_spec.size)


def checked_normalize_obs(value: object) -> NormalizeObs:
    """What a user said of it."""
    if isinstance(value, str) and value == "auto":
        return "auto"
    if not isinstance(switch := plain(value), bool):
        raise ConfigError(
            "normalize_obs is a switch", got=value, allowed="True or False, or 'auto'"
        )
    return switch


class Normalizer:
    """Normalizes observations by their running mean and standard deviation, and scales rewards.

    Rewards are divided by the running standard deviation of the discounted return, as in
    Stable-Baselines3's VecNormalize, and never shifted. Every member has its own numbers.

    A learner is always given normalized numbers. A rollout is remembered as the policy saw it; a
    replay memory keeps what the environment gave, and `batch` normalizes what is drawn from it, for
    by then the scale is another. Observations count at fixed points only (`advance`), so that the
    scale stands still while a rollout is collected.

    Args:
        num_members: Members (P).
        num_slots: Environment slots of each member (E).
        obs_size: The size of an observation (O).
        gamma: The members' discounts, (P,).
        normalize_obs: Whether observations are normalized.
        normalize_reward: Whether rewards are scaled.
        prior: What is known of observations beforehand; None treats all numbers alike.
        packed: The words of an observation that are no numbers, and stay as they are.
        clip: The largest size of a normalized number.
    """

    def __init__(
        self,
        num_members: int,
        num_slots: int,
        obs_size: int,
        gamma: Tensor,
        *,
        normalize_obs: NormalizeObs = True,
        normalize_reward: bool = True,
        prior: ObsPrior | None = None,
        packed: Sequence[slice] = (),
        clip: float = 10.0,
    ) -> None:
        if not clip > 0.0:
            raise ConfigError("clip must be positive", got=clip, allowed="numbers above 0")
        device = gamma.device
        self.clip = clip
        self._obs = None
        if normalize_obs:
            self._obs = Scaling(num_members, obs_size, device, prior, packed)
        self._parts = numbers_beside(packed, obs_size) if packed else None
        self._returns = RunningMoments(num_members, 1, device) if normalize_reward else None
        self._shown: Tensor | None = None
        self._gamma = gamma.to(torch.float64).unsqueeze(-1)
        self._so_far = torch.zeros(num_members, num_slots, dtype=torch.float64, device=device)

    @property
    def scales_obs(self) -> bool:
        """Whether observations are normalized."""
        return self._obs is not None

    @property
    def obs_mean(self) -> Tensor:
        """What is subtracted from an observation, (P, O), or a zero."""
        return self._zero() if self._obs is None else self._obs.mean

    @property
    def obs_std(self) -> Tensor:
        """What an observation is then divided by, (P, O), or a one."""
        return self._zero() + 1.0 if self._obs is None else self._obs.std

    @property
    def return_std(self) -> Tensor:
        """What rewards are divided by, float64 (P, 1), or a one."""
        return self._zero() + 1.0 if self._returns is None else _std(self._returns)

    def obs(self, obs: Tensor, member: int | None = None) -> Tensor:
        """Observations (P, ..., O), normalized by what has counted so far.

        Args:
            obs: Observations as the environment gave them.
            member: Whose they are, (1, ..., O); None: everyone has some.
        """
        if self._obs is None:
            return obs
        if self._parts is None:
            return self._clipped(self._obs(obs, member))
        seen = obs.clone()
        for part in self._parts:
            seen[..., part] = self._clipped(self._obs(obs, member, part))
        return seen

    def shown(self, obs: Tensor) -> Tensor:
        """What `obs` gives, always in the same place, for compiled code to act on."""
        if self._obs is None:
            return obs
        if self._shown is None or self._shown.shape != obs.shape:
            self._shown = torch.empty_like(obs)
        return self._shown.copy_(self.obs(obs))

    def take(self, obs: Tensor, valid: Tensor) -> None:
        """Keeps observations (P, B, O) that were acted on, to count at the next `advance`.

        Args:
            obs: Observations as the environment gave them.
            valid: Where a transition took place, (P, B); elsewhere nothing counts.
        """
        if self._obs is not None:
            self._obs.take(obs, valid)

    def advance(self, ticks: int, full: bool | None) -> None:
        """Lets what was seen count if it is time: after a rollout, or every 256 steps with replay.

        Before the first of these points there are others, after 1, 2, 4, 8, ... steps: a learner is
        not to begin with numbers of any size.

        Args:
            ticks: Steps of the vector environment so far.
            full: Whether a rollout is at its end; None where there is replay.
        """
        early = ticks < STEPS_BETWEEN and ticks & (ticks - 1) == 0
        at_end = ticks % STEPS_BETWEEN == 0 if full is None else full
        if self._obs is not None and (early or at_end):
            self._obs.advance()

    def reward(
        self, reward: Tensor, done: Tensor, update: bool, valid: Tensor | None = None
    ) -> Tensor:
        """Rewards (P, E) of one step, scaled.

        Args:
            reward: Rewards as the environment gave them.
            done: Where an episode has ended, for either reason.
            update: Whether they count; not in evaluation.
            valid: Where a transition took place; elsewhere nothing counts.
        """
        if self._returns is None:
            return reward
        if update:
            went_on = self._so_far * self._gamma + reward
            self._returns.update(went_on.unsqueeze(-1), valid)
            if valid is not None:
                went_on = torch.where(valid, went_on, self._so_far)
            self._so_far.copy_(went_on.masked_fill(done, 0.0))
        return self._scaled(reward)

    def taken_in(self, step: Transition, seen: Tensor, *, as_seen: bool) -> Transition:
        """What is remembered of a step, whose observation and reward count.

        Args:
            step: The step, as the environment gave it.
            seen: Its observation, normalized.
            as_seen: Whether it is kept as the policy saw it, which must be judged by that. Replay
                keeps what was there: by the time it is drawn the scale is another.
        """
        ended = step.terminated | step.truncated
        self.take(step.obs, step.valid)
        scaled = self.reward(step.reward, ended, update=True, valid=step.valid)
        if not as_seen:
            return step
        next_obs = self.obs(step.next_obs)
        return step._replace(obs=seen, reward=scaled, next_obs=next_obs)

    def begin_episodes(self) -> None:
        """Every slot is about to begin an episode, whose return is nothing so far."""
        self._so_far.zero_()

    def batch(self, batch: ReplayBatch) -> ReplayBatch:
        """What was drawn from replay, (P, B, ...), as a learner is to see it now."""
        return batch._replace(
            obs=self.obs(batch.obs),
            next_obs=self.obs(batch.next_obs),
            reward=self._scaled(batch.reward),
        )

    def state_dict(self) -> dict[str, Tensor]:
        """All numbers, each with the member axis first."""
        state = {} if self._obs is None else _named("obs", self._obs.state_dict())
        if self._returns is not None:
            state |= _named("return", self._returns.state_dict()) | {"so_far": self._so_far.clone()}
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        if set(state) != set(self.state_dict()):
            raise ConfigError(
                "the state was saved with other things normalized",
                got=sorted(state),
                allowed=", ".join(sorted(self.state_dict())) or "nothing",
                fix="Set normalize_obs and normalize_reward as they were.",
            )
        for name, moments in (("obs", self._obs), ("return", self._returns)):
            if moments is not None:
                moments.load_state_dict({n: state[f"{name}_{n}"] for n in moments.state_dict()})
        if self._returns is not None:
            self._so_far.copy_(state["so_far"])

    def _scaled(self, reward: Tensor) -> Tensor:
        if self._returns is None:
            return reward
        return self._clipped(reward / _std(self._returns))

    def _clipped(self, x: Tensor) -> Tensor:
        return x.clamp(-self.clip, self.clip).to(torch.float32)

    def _zero(self) -> Tensor:
        return torch.zeros((), dtype=torch.float64, device=self._so_far.device)


def _std(moments: RunningMoments) -> Tensor:
    return (moments.variance + EPSILON).sqrt()


def _named(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}_{name}": x for name, x in state.items()}
