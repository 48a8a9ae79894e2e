"""Auto-regressive, the chain rule: each head's network sees the state and the heads before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from headwise.errors import ConfigError
from headwise.factorizations.action_critic import ActionCritic
from headwise.factorizations.base import Factorization, factorizations
from headwise.factorizations.chain import ChainPolicy
from headwise.factorizations.chain_actor import ChainActor
from headwise.factorizations.chain_values import ChainValue
from headwise.factorizations.critics import ValueCritic
from headwise.heads.action_value import Actor, DiscreteValue, SoftValue
from headwise.heads.blueprint import Blueprint, Critic, Policy
from headwise.registry import unknown
from headwise.spaces import ActionSpec


@factorizations.register("ar")
@dataclass(frozen=True, kw_only=True)
class AR(Factorization):
    """A network for every head that sees the heads before it: the chain rule."""

    name: ClassVar[str] = "ar"
    joint_ratio: ClassVar[bool] = True
    order: tuple[str, ...] | None = None
    """Names of the heads in the order in which they are chosen; the spec's own if not given. SAC
    draws continuous heads before discrete ones whatever the spec says, because its critics choose
    options given the numbers: an order that says otherwise is refused there."""

    def check(self, spec: ActionSpec) -> None:
        """The order must fit the spec."""
        check_order(spec, self.order)

    def policy(self, blueprint: Blueprint) -> Policy:
        """A chain of policy networks."""
        return ChainPolicy(blueprint, self._heads(blueprint))

    def critic(self, blueprint: Blueprint) -> Critic:
        """One value of the state."""
        return ValueCritic(blueprint)

    def value(self, blueprint: Blueprint) -> DiscreteValue:
        """V and a chain of advantage networks."""
        return ChainValue(blueprint, self._heads(blueprint))

    def twins(self, blueprint: Blueprint) -> SoftValue:
        """Chains of advantage networks over options, given the numbers; or of the whole action."""
        self._need_numbers_first(blueprint)
        discrete = blueprint.layout.num_discrete
        if not discrete:
            return ActionCritic(blueprint, copies=2)
        order = [head for head in self._heads(blueprint) if head < discrete]
        return ChainValue(blueprint, order, copies=2)

    def actor(self, blueprint: Blueprint) -> Actor:
        """A chain of actors over the continuous heads."""
        discrete = blueprint.layout.num_discrete
        order = [head - discrete for head in self._heads(blueprint) if head >= discrete]
        return ChainActor(blueprint, order)

    def _heads(self, blueprint: Blueprint) -> list[int]:
        """The learner's heads in the order in which they are chosen."""
        names = self.order or blueprint.layout.spec.names
        return [blueprint.layout.names.index(name) for name in names]

    def _need_numbers_first(self, blueprint: Blueprint) -> None:
        order, discrete = self._heads(blueprint), blueprint.layout.num_discrete
        kinds = [head < discrete for head in order]
        if self.order is not None and kinds != sorted(kinds):
            raise ConfigError(
                "SAC draws continuous heads before discrete ones",
                got=f"order={self.order}",
                allowed="an order that has the continuous heads first",
                fix="Leave the order out, or put the continuous heads first.",
            )


def check_order(spec: ActionSpec, order: Sequence[str] | None) -> None:
    """Refuses an order of heads that a spec cannot be chosen in."""
    if order is None:
        return
    for name in order:
        if name not in spec.names:
            raise unknown("head", name, spec.names)
    if sorted(order) != sorted(spec.names):
        raise ConfigError(
            "an order must name every head once", got=list(order), allowed=", ".join(spec.names)
        )
    numbers = [spec.names.index(name) for name in order]
    for head, condition in enumerate(spec.conditions):
        if condition is not None and numbers.index(condition.head) > numbers.index(head):
            raise ConfigError(
                "a parameter cannot be chosen before the choice that puts it in use",
                got=f"{spec.names[head]!r} before {spec.names[condition.head]!r}",
            )
