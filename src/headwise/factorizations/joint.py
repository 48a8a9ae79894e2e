"""Joint: one choice among all joint actions. Exact, and as large as the product of the heads.

The learner sees one discrete head (`heads/layout.py`), and everything else follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from headwise.checks import check_counts
from headwise.errors import ConfigError
from headwise.factorizations.base import Factorization, factorizations
from headwise.factorizations.critics import ValueCritic
from headwise.factorizations.plain import PlainValue
from headwise.factorizations.policies import FactoredPolicy
from headwise.factorizations.values import BranchingValue
from headwise.heads.action_value import DiscreteValue, SoftValue
from headwise.heads.blueprint import Blueprint, Critic, Policy
from headwise.spaces import ActionSpec


@factorizations.register("joint")
@dataclass(frozen=True, kw_only=True)
class Joint(Factorization):
    """One choice among all joint actions."""

    name: ClassVar[str] = "joint"
    obeys: ClassVar[Mapping[str, Literal["all", "trees"]]] = {
        "policy": "all",
        "value": "all",
        "twins": "all",
    }
    is_joint: ClassVar[bool] = True
    joint_ratio: ClassVar[bool] = True
    soft_targets: ClassVar[bool] = True
    max_joint: int = 10_000
    """The largest number of joint actions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # A joint action travels as a float32, which counts no further.
        check_counts(self, "max_joint", most=2**24)

    def check(self, spec: ActionSpec) -> None:
        """Every head must be discrete, and their product not too large."""
        if spec.joint_size is None:
            raise ConfigError(
                "the joint factorization needs discrete heads, and some are continuous (Range)",
                got=str(spec),
                allowed="discrete heads, or continuous ones cut into bins",
                fix="Give a number of bins, or use factorization='ar', which is as expressive.",
            )
        if spec.joint_size > self.max_joint:
            raise ConfigError(
                "there are too many joint actions",
                got=f"{spec.joint_size:,} = {' x '.join(map(str, spec.cardinalities))}",
                allowed=f"at most {self.max_joint:,}",
                fix="Raise max_joint, use fewer bins, or use factorization='ar' or 'vdn'.",
            )

    def least_numbers(self, spec: ActionSpec) -> int:
        """One of each joint action."""
        return spec.joint_size or 0

    def policy(self, blueprint: Blueprint) -> Policy:
        """One categorical distribution over joint actions."""
        return FactoredPolicy(blueprint)

    def critic(self, blueprint: Blueprint) -> Critic:
        """One value."""
        return ValueCritic(blueprint)

    def value(self, blueprint: Blueprint) -> DiscreteValue:
        """V and the advantage of each joint action."""
        return BranchingValue(blueprint)

    def plain_value(self, blueprint: Blueprint) -> DiscreteValue:
        """A plain value of each joint action."""
        return PlainValue(blueprint)

    def twins(self, blueprint: Blueprint) -> SoftValue:
        """Discrete SAC over joint actions."""
        return BranchingValue(blueprint, copies=2)
