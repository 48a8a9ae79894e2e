"""Shared encoder: one network with an output for every head.

As a policy each head is drawn by itself. As a value each head is trained on the global return by
itself, the others being noise to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from headwise.added import added
from headwise.factorizations.action_critic import ActionCritic
from headwise.factorizations.base import Factorization, factorizations, need_max
from headwise.factorizations.critics import ValueCritic
from headwise.factorizations.plain import PlainValue
from headwise.factorizations.policies import FactoredPolicy
from headwise.factorizations.values import BranchingValue, Center
from headwise.heads.action_value import Actor, DiscreteValue, SoftValue
from headwise.heads.blueprint import Blueprint, Critic, Policy


@factorizations.register("shared")
@dataclass(frozen=True, kw_only=True)
class Shared(Factorization):
    """One encoder for all heads, nothing mixed (SAC: the critic sees the whole action)."""

    name: ClassVar[str] = "shared"
    obeys: ClassVar[Mapping[str, Literal["all", "trees"]]] = {"policy": "trees"}
    soft_targets: ClassVar[bool] = True
    chooses: ClassVar[Literal["discrete", "none"]] = "none"
    center: Center = added("max")
    """What advantages are measured from in DQN: the best option (`max`, as the paper's Appendix B
    wants it), the mean of all (`mean`) or nothing (`none`)."""

    def policy(self, blueprint: Blueprint) -> Policy:
        """A policy whose heads share an encoder."""
        return FactoredPolicy(blueprint)

    def critic(self, blueprint: Blueprint) -> Critic:
        """One value for all heads."""
        need_max(self.center, "PPO")
        return ValueCritic(blueprint)

    def value(self, blueprint: Blueprint) -> DiscreteValue:
        """V + A_h for each head by itself."""
        return BranchingValue(blueprint, adds_up=False, center=self.center)

    def plain_value(self, blueprint: Blueprint) -> DiscreteValue:
        """A plain Q_h for each head by itself."""
        need_max(self.center, "a plain value")
        return PlainValue(blueprint, adds_up=False)

    def twins(self, blueprint: Blueprint) -> SoftValue:
        """SAC-Concat's critics, which see the whole action."""
        need_max(self.center, "SAC")
        return ActionCritic(blueprint, copies=2)

    def actor(self, blueprint: Blueprint) -> Actor:
        """A policy over all heads."""
        return FactoredPolicy(blueprint)
