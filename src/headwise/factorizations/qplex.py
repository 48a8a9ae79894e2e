"""Monotonic mixing: Q = V + f(A_1 ... A_H | s), increasing in each advantage (PPO-MIX for PPO).

The paper's mixer is QMIX over advantages; `mixer="qplex"` weights each advantage by a positive
function of the state and the joint action instead, as QPLEX itself does. DQN alone has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from headwise.added import added
from headwise.checks import check_counts
from headwise.errors import ConfigError
from headwise.factorizations.base import (
    Factorization,
    factorizations,
    need_max,
    need_options,
)
from headwise.factorizations.critics import MixingCritic
from headwise.factorizations.mixing import MixedValue, MixerKind, WeighedValue
from headwise.factorizations.policies import FactoredPolicy
from headwise.factorizations.values import Center
from headwise.heads.action_value import Actor, DiscreteValue, SoftValue
from headwise.heads.blueprint import Blueprint, Critic, Importance, Policy

_OF_PAPER = {"mixer_bend": "elu", "mixer_weights": "abs", "center": "max"}
"""Settings that the paper's mixer alone has, as they are by default."""


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
    mixer_bend: Literal["elu", "relu"] = added("elu")
    """How hidden units of the paper's mixer bend. A ReLU is zero for advantages that are, so it
    needs another `center` in DQN, and SAC cannot have it."""
    mixer_weights: Literal["abs", "softplus"] = added("abs")
    """What makes weights of the paper's mixer positive."""
    critic_bins: int = 5
    """Bins of a continuous head in the critic of PPO."""
    center: Center = added("max")
    """What advantages are measured from in DQN: the best option (`max`, as the paper's Appendix B
    wants it), the mean of all (`mean`) or nothing (`none`)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "mixer_width", "critic_bins")
        others = [name for name in _OF_PAPER if getattr(self, name) != _OF_PAPER[name]]
        if self.mixer == "qplex" and others:
            raise ConfigError(
                "QPLEX's own mixer has no hidden units, and its weights, which see the action, "
                "choose the best action only if no advantage is above zero",
                got="mixer='qplex', " + ", ".join(f"{n}={getattr(self, n)!r}" for n in others),
                allowed=f"mixer='paper', or mixer='qplex' without {', '.join(_OF_PAPER)}",
                fix="Leave them out.",
            )

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
        need_max(self.center, "PPO")
        return MixingCritic(blueprint, self.critic_bins, self.mixer_width, self._bends)

    def value(self, blueprint: Blueprint) -> DiscreteValue:
        """V and advantages in a mixer."""
        if self.mixer == "qplex":
            return WeighedValue(blueprint, self.mixer_width)
        if self.center == "max":
            self._need_elu("DQN")
        return MixedValue(blueprint, self.mixer_width, self._bends, center=self.center)

    def twins(self, blueprint: Blueprint) -> SoftValue:
        """SAC-BDQ's critics with their advantages in a mixer."""
        self._need_paper("SAC")
        need_options(blueprint, self.name)
        need_max(self.center, "SAC")
        self._need_elu("SAC")
        return MixedValue(blueprint, self.mixer_width, self._bends, copies=2)

    def actor(self, blueprint: Blueprint) -> Actor:
        """A policy over the continuous heads."""
        return FactoredPolicy(blueprint, which="continuous")

    @property
    def _bends(self) -> dict[str, bool]:
        return {"relu": self.mixer_bend == "relu", "soft": self.mixer_weights == "softplus"}

    def _need_elu(self, algorithm: str) -> None:
        if self.mixer_bend != "elu":
            raise ConfigError(
                f"max-centered advantages of {algorithm} are never above zero, where a ReLU is "
                "flat: nothing could be learned of any action",
                got=f"mixer_bend={self.mixer_bend!r}, center={self.center!r}",
                allowed="mixer_bend='elu', or center 'mean' or 'none' with DQN",
            )

    def _need_paper(self, algorithm: str) -> None:
        if self.mixer != "paper":
            raise ConfigError(
                f"the mixer of {algorithm} weighs advantages before the action is known",
                got=f"mixer={self.mixer!r}",
                allowed="mixer='paper', or mixer='qplex' with DQN",
            )
