"""The factorizations, as far as PPO goes, for now in one file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headwise.engine.factorizations.base import Factorization, factorizations
from headwise.engine.factorizations.chain import ChainPolicy
from headwise.engine.factorizations.critics import BranchingCritic, MixingCritic, ValueCritic
from headwise.engine.factorizations.policies import FactoredPolicy
from headwise.heads.blueprint import Blueprint, Critic, Importance, Policy


@factorizations.register("shared")
@dataclass(frozen=True, kw_only=True)
class Shared(Factorization):
    name: ClassVar[str] = "shared"

    def policy(self, plan: Blueprint) -> Policy:
        return FactoredPolicy(plan)

    def critic(self, plan: Blueprint) -> Critic:
        return ValueCritic(plan)


@factorizations.register("independent")
@dataclass(frozen=True, kw_only=True)
class Independent(Factorization):
    name: ClassVar[str] = "independent"

    def policy(self, plan: Blueprint) -> Policy:
        return FactoredPolicy(plan, apart=True)

    def critic(self, plan: Blueprint) -> Critic:
        return ValueCritic(plan, plan.layout.num_heads)


@factorizations.register("vdn")
@dataclass(frozen=True, kw_only=True)
class VDN(Factorization):
    name: ClassVar[str] = "vdn"
    critic_bins: int = 5

    def policy(self, plan: Blueprint) -> Policy:
        return FactoredPolicy(plan)

    def critic(self, plan: Blueprint) -> Critic:
        return BranchingCritic(plan, self.critic_bins)


@factorizations.register("qplex")
@dataclass(frozen=True, kw_only=True)
class QPLEX(Factorization):
    name: ClassVar[str] = "qplex"
    default_importance: ClassVar[Importance] = "grad"
    mixer_width: int = 128
    mixer: str = "paper"
    critic_bins: int = 5

    def policy(self, plan: Blueprint) -> Policy:
        return FactoredPolicy(plan)

    def critic(self, plan: Blueprint) -> Critic:
        return MixingCritic(plan, self.critic_bins, self.mixer_width)


@factorizations.register("ar")
@dataclass(frozen=True, kw_only=True)
class AR(Factorization):
    name: ClassVar[str] = "ar"
    joint_ratio: ClassVar[bool] = True
    order: tuple[str, ...] | None = None

    def policy(self, plan: Blueprint) -> Policy:
        names = self.order or plan.layout.spec.names
        return ChainPolicy(plan, [plan.layout.names.index(name) for name in names])

    def critic(self, plan: Blueprint) -> Critic:
        return ValueCritic(plan)


@factorizations.register("joint")
@dataclass(frozen=True, kw_only=True)
class Joint(Factorization):
    name: ClassVar[str] = "joint"
    is_joint: ClassVar[bool] = True
    joint_ratio: ClassVar[bool] = True

    def policy(self, plan: Blueprint) -> Policy:
        return FactoredPolicy(plan)

    def critic(self, plan: Blueprint) -> Critic:
        return ValueCritic(plan)
