"""Monotonic mixing: Q = V + f(A_1 ... A_H | s), increasing in each advantage (PPO-MIX for PPO).

The paper's mixer is QMIX over advantages; `mixer="qplex"` weights each advantage by a positive
function of the state and the joint action instead, as QPLEX itself does. DQN alone has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from headwise.checks import check_counts
from headwise.errors import ConfigError
from headwise.factorizations.base import Factorization, factorizations, need_options
from headwise.factorizations.critics import MixingCritic
from headwise.factorizations.mixing import MixedValue, MixerKind, WeighedValue
from headwise.factorizations.policies import FactoredPolicy
from headwise.heads.action_value import Actor, DiscreteValue, SoftValue
from headwise.heads.blueprint import Blueprint, Critic, Importance, Policy


@factorizations.register("qplex")
@dataclass(frozen=True, kw_only=True)
class QPLEX(Factorization):
    """One encoder, advantages mixed monotonically: Q = V + f(A_1 ... A_H | s)."""

    name: ClassVar[str] = "qplex"
    default_importance: ClassVar[Importance] = "grad"
    mixer_width: int = 128
    """Hidden units of the mixer."""
    mixer: MixerKind = "paper"
    """`paper`: QMIX over advantages. `qplex`: positive weights that see the joint action (DQN)."""
    critic_bins: int = 5
    """Bins of a continuous head in the critic of PPO."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "mixer_width", "critic_bins")

    @classmethod
    def small(cls) -> Self:
        """A narrow mixer."""
        return cls(mixer_width=16)

    def policy(self, blueprint: Blueprint) -> Policy:
        """A policy whose heads share an encoder."""
        return FactoredPolicy(blueprint)

    def critic(self, blueprint: Blueprint) -> Critic:
        """V and advantages, centered under the policy, in a mixer."""
        self._need_paper("PPO")
        return MixingCritic(blueprint, self.critic_bins, self.mixer_width)

    def value(self, blueprint: Blueprint) -> DiscreteValue:
        """V and advantages, centered by the best option, in a mixer."""
        if self.mixer == "qplex":
            return WeighedValue(blueprint, self.mixer_width)
        return MixedValue(blueprint, self.mixer_width)

    def twins(self, blueprint: Blueprint) -> SoftValue:
        """SAC-BDQ's critics with their advantages in a mixer."""
        self._need_paper("SAC")
        need_options(blueprint, self.name)
        return MixedValue(blueprint, self.mixer_width, copies=2)

    def actor(self, blueprint: Blueprint) -> Actor:
        """A policy over the continuous heads."""
        return FactoredPolicy(blueprint, which="continuous")

    def _need_paper(self, algorithm: str) -> None:
        if self.mixer != "paper":
            raise ConfigError(
                f"the mixer of {algorithm} weighs advantages before the action is known",
                got=f"mixer={self.mixer!r}",
                allowed="mixer='paper', or mixer='qplex' with DQN",
            )
