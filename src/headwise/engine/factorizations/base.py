"""What a factorization offers, and the registry that lists all of them.

A factorization is a deterministic map: chance comes in as uniform numbers. It offers what it can
(a policy and a critic for policy gradients, a value of actions, a soft value), and an algorithm
that asks for something it lacks is refused when the learner is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headwise.checks import check_settings
from headwise.errors import ConfigError
from headwise.heads.blueprint import Blueprint, Critic, Importance, Policy
from headwise.registry import Registry
from headwise.spaces import ActionSpec

factorizations: Registry[type[Factorization]] = Registry("factorization")


@dataclass(frozen=True, kw_only=True)
class Factorization:
    """How the joint policy and value are built from heads.

    Of `policy`, `critic`, `value` and `soft` a factorization defines those that it has.
    """

    name: ClassVar[str]
    is_joint: ClassVar[bool] = False
    """Whether the learner sees one discrete head of all joint actions."""
    joint_ratio: ClassVar[bool] = False
    """Whether PPO clips one ratio of the joint action, unless told otherwise, and not each head's:
    for policies in which a head's probability depends on other heads."""
    default_importance: ClassVar[Importance] = "range"
    """How PPO shares out credit by its critic, if that branches, unless told otherwise."""

    def __post_init__(self) -> None:
        check_settings(self)

    def check(self, spec: ActionSpec) -> None:
        """Refuses a spec that this factorization cannot handle."""

    def policy(self, plan: Blueprint) -> Policy:
        """A distribution over actions, for PPO."""
        raise NotImplementedError

    def critic(self, plan: Blueprint) -> Critic:
        """The value for that policy to learn by, for PPO; it may be a branching one."""
        raise NotImplementedError


def offers(kind: type[Factorization], what: str) -> bool:
    """Whether a factorization defines something that algorithms may need of it."""
    return getattr(kind, what, None) is not getattr(Factorization, what, None)


def check_offers(factorization: Factorization, what: str, algorithm: str) -> None:
    """Refuses a factorization without something that an algorithm needs, and names who has it."""
    if not offers(type(factorization), what):
        raise ConfigError(
            f"{algorithm} needs a {what}, and the factorization {factorization.name!r} has none",
            allowed=", ".join(name for name, kind in factorizations.items() if offers(kind, what)),
            fix="Choose one of those.",
        )
