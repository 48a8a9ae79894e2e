"""Independent networks: every head has its own, all trained on the same reward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from headwise.added import added
from headwise.factorizations.base import Factorization, factorizations
from headwise.factorizations.critics import ValueCritic
from headwise.factorizations.independent_critics import IndependentCritics
from headwise.factorizations.plain import PlainValue
from headwise.factorizations.policies import FactoredPolicy
from headwise.factorizations.values import BranchingValue
from headwise.heads.action_value import Actor, DiscreteValue, SoftValue
from headwise.heads.blueprint import Blueprint, Critic, Policy


@factorizations.register("independent")
@dataclass(frozen=True, kw_only=True)
class Independent(Factorization):
    """A network of its own for every head, all on the same reward."""

    name: ClassVar[str] = "independent"
    obeys: ClassVar[Mapping[str, Literal["all", "trees"]]] = {"policy": "trees"}
    soft_targets: ClassVar[bool] = True

    shared_encoder: bool = added(False)
    """Whether heads share an encoder of images, entities or your own, which the paper's agents have
    none of; their networks behind it stay their own."""

    def policy(self, blueprint: Blueprint) -> Policy:
        """A policy network for each head."""
        return FactoredPolicy(blueprint, independent=True)

    def critic(self, blueprint: Blueprint) -> Critic:
        """A value network for each head."""
        return ValueCritic(blueprint, blueprint.layout.num_heads)

    def value(self, blueprint: Blueprint) -> DiscreteValue:
        """A dueling network for each head: V_h and A_h, each regressed on its own target."""
        return BranchingValue(blueprint, adds_up=False, independent=True)

    def plain_value(self, blueprint: Blueprint) -> DiscreteValue:
        """A network for each head whose outputs are the values of its options."""
        return PlainValue(blueprint, adds_up=False, independent=True)

    def twins(self, blueprint: Blueprint) -> SoftValue:
        """A pair of critics for each head: discrete SAC, or SAC of a single real number."""
        return IndependentCritics(blueprint, copies=2)

    def actor(self, blueprint: Blueprint) -> Actor:
        """An actor for each continuous head, which does not ask whether it is in use."""
        return FactoredPolicy(blueprint, independent=True, which="continuous", conditional=False)
