"""Value decomposition: Q = V + sum of the heads' advantages (BDQ for DQN, VDN-PPO for PPO)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headwise.checks import check_counts
from headwise.factorizations.base import Blueprint, Factorization, Policy, Value, factorizations
from headwise.factorizations.parts.critics import BranchingCritic
from headwise.factorizations.parts.plain import PlainValue
from headwise.factorizations.parts.values import BranchingValue
from headwise.factorizations.shared import SharedPolicy
from headwise.factorizations.soft.base import Soft, need_options
from headwise.factorizations.soft.branching import BranchingSoft


@factorizations.register("vdn")
@dataclass(frozen=True, kw_only=True)
class VDN(Factorization):
    """One encoder, advantages added up: Q = V + sum A_h."""

    name: ClassVar[str] = "vdn"
    has_soft_heads: ClassVar[bool] = True
    has_plain_value: ClassVar[bool] = True
    critic_bins: int = 5
    """Bins of a Range head in the critic of PPO."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "critic_bins")

    def policy(self, blueprint: Blueprint) -> Policy:
        """A policy whose heads share an encoder."""
        return SharedPolicy(blueprint)

    def critic(self, blueprint: Blueprint) -> BranchingCritic:
        """V and policy-centred advantages that add up."""
        return BranchingCritic(blueprint, 0, self.critic_bins)

    def value(self, blueprint: Blueprint) -> Value:
        """V and max-centred advantages that add up, or plain values that do."""
        return BranchingValue(blueprint) if blueprint.dueling else PlainValue(blueprint)

    def soft(self, blueprint: Blueprint) -> Soft:
        """SAC-BDQ: options from the critic itself, numbers from an actor."""
        need_options(blueprint.spec, self.name)
        return BranchingSoft(blueprint)
