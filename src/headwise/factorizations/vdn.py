"""Value decomposition: Q(s, a) = V(s) + sum_h A_h(s, a_h). With PPO the paper calls it VDN-PPO.

DQN and SAC center A_h by its maximum: then V is the greedy value, max_a Q(s, a), of which targets
are made. PPO centers A_h under the policy: then V is the value of that policy, which GAE needs.

The paper calls the values of DQN and SAC BDQ. The branching dueling networks of Tavakoli et al.
(2018) learn each V + A_h by itself, as `shared` does. The VDN of Sunehag et al. (2018) has no V,
Q = sum_h Q_h: that is `plain_value`, which DQN learns with `dueling=False`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from headwise.added import added
from headwise.checks import check_counts
from headwise.factorizations.base import (
    Factorization,
    factorizations,
    need_max,
    need_options,
)
from headwise.factorizations.critics import BranchingCritic
from headwise.factorizations.plain import PlainValue
from headwise.factorizations.policies import FactoredPolicy
from headwise.factorizations.values import BranchingValue, Center
from headwise.heads.action_value import Actor, DiscreteValue, SoftValue
from headwise.heads.blueprint import Blueprint, Critic, Policy


@factorizations.register("vdn")
@dataclass(frozen=True, kw_only=True)
class VDN(Factorization):
    """One encoder, advantages added up: Q = V + sum A_h."""

    name: ClassVar[str] = "vdn"
    obeys: ClassVar[Mapping[str, Literal["all", "trees"]]] = {"policy": "trees", "value": "trees"}
    soft_targets: ClassVar[bool] = True
    critic_bins: int = 5
    """Bins of a continuous head in the critic of PPO."""
    center: Center = added("max")
    """What advantages are measured from in DQN: the best option (`max`, as the paper's Appendix B
    wants it), the mean of all (`mean`) or nothing (`none`)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "critic_bins")

    def policy(self, blueprint: Blueprint) -> Policy:
        """A policy whose heads share an encoder."""
        return FactoredPolicy(blueprint)

    def critic(self, blueprint: Blueprint) -> Critic:
        """V and advantages, centered under the policy, that add up."""
        need_max(self.center, "PPO")
        return BranchingCritic(blueprint, self.critic_bins)

    def value(self, blueprint: Blueprint) -> DiscreteValue:
        """V and advantages that add up, centered by their maximum."""
        return BranchingValue(blueprint, adds_up=True, center=self.center)

    def plain_value(self, blueprint: Blueprint) -> DiscreteValue:
        """Plain values of options that add up: the VDN of Sunehag et al."""
        need_max(self.center, "a plain value")
        return PlainValue(blueprint, adds_up=True)

    def twins(self, blueprint: Blueprint) -> SoftValue:
        """SAC-BDQ's critics: options are a softmax of their advantages."""
        need_options(blueprint, self.name)
        need_max(self.center, "SAC")
        return BranchingValue(blueprint, adds_up=True, copies=2)

    def actor(self, blueprint: Blueprint) -> Actor:
        """A policy over the continuous heads."""
        return FactoredPolicy(blueprint, which="continuous")
