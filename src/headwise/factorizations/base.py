"""What a factorization offers, and the registry that lists all of them.

A factorization is a deterministic map: chance comes in as uniform numbers. It offers what it can
(a policy and a critic for PPO, a value of actions for DQN, twin critics for SAC), and an algorithm
that asks for something it lacks is refused when the learner is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from headwise.checks import check_settings
from headwise.errors import ConfigError
from headwise.heads.action_value import Actor, DiscreteValue, SoftValue
from headwise.heads.blueprint import Blueprint, Critic, Importance, Policy
from headwise.heads.layout import Layout
from headwise.registry import Registry
from headwise.spaces import ActionSpec

factorizations: Registry[type[Factorization]] = Registry("factorization")


@dataclass(frozen=True, kw_only=True)
class Factorization:
    """How the joint policy and value are built from heads.

    Of the methods below that make something a factorization defines those that it has.
    """

    name: ClassVar[str]
    is_joint: ClassVar[bool] = False
    """Whether the learner sees one discrete head of all joint actions."""
    joint_ratio: ClassVar[bool] = False
    """Whether PPO clips one ratio of the joint action, unless told otherwise, and not each head's:
    for policies in which a head's probability depends on other heads."""
    default_importance: ClassVar[Importance] = "range"
    """How PPO shares out credit by its critic, if that branches, unless told otherwise."""
    soft_targets: ClassVar[bool] = False
    """Whether its values have soft values and log-policies in closed form, which DQN needs at a
    temperature."""
    chooses: ClassVar[Literal["discrete", "none"]] = "discrete"
    """The heads that its critics of SAC choose themselves, by a softmax of options' values;
    an actor draws the others."""

    obeys: ClassVar[Mapping[str, Literal["all", "trees"]]] = {}
    """What of the below obeys constraints exactly, by name: all of them, or those in which the
    options of a head depend on one other at most."""

    def __post_init__(self) -> None:
        check_settings(self)

    @classmethod
    def small(cls) -> Self:
        """One of moderate size, which contract tests build."""
        return cls()

    def check(self, spec: ActionSpec) -> None:
        """Refuses a spec that this factorization cannot handle."""

    def least_numbers(self, spec: ActionSpec) -> int:
        """Numbers that a member's networks have at least: told before anything is built."""
        return sum(spec.cardinalities)

    def policy(self, blueprint: Blueprint) -> Policy:
        """A distribution over actions, for PPO."""
        raise NotImplementedError

    def critic(self, blueprint: Blueprint) -> Critic:
        """The value for that policy to learn by, for PPO; it may be a branching one."""
        raise NotImplementedError

    def value(self, blueprint: Blueprint) -> DiscreteValue:
        """The value of actions, for DQN."""
        raise NotImplementedError

    def plain_value(self, blueprint: Blueprint) -> DiscreteValue:
        """The same as a number for each option, without a value of the state: `dueling=False`."""
        raise NotImplementedError

    def twins(self, blueprint: Blueprint) -> SoftValue:
        """Twin critics, for SAC."""
        raise NotImplementedError

    def actor(self, blueprint: Blueprint) -> Actor:
        """The policy over the heads that twin critics do not choose, for SAC."""
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


def need_max(center: str, who: str) -> None:
    """Refuses another centering where advantages are not those of DQN's dueling networks."""
    if center != "max":
        raise ConfigError(
            f"{who} centers advantages in its own way, or has none",
            got=f"center={center!r}",
            allowed="center='max', or 'mean' and 'none' with DQN(dueling=True)",
            fix="Leave center out.",
        )


def check_shares(factorization: Factorization) -> None:
    """Refuses an encoder for heads that share nothing, unless a setting says that they share it."""
    if not getattr(factorization, "shared_encoder", True):
        raise ConfigError(
            f"the heads of the factorization {factorization.name!r} share nothing, and this "
            "observation is read by an encoder",
            got="shared_encoder=False",
            allowed="shared_encoder=True: one encoder for all heads, networks of their own behind",
            fix='Say shared_encoder=True, or use encoder="vector".',
        )


def check_constraints(
    factorization: Factorization, layout: Layout, spec: ActionSpec, what: str, algorithm: str
) -> None:
    """Refuses constraints that something of a factorization would not obey exactly."""
    if not spec.links:
        return
    obeyed = factorization.obeys.get(what)
    if obeyed == "all" or (obeyed == "trees" and layout.links is not None and layout.links.is_tree):
        return
    able = [name for name, kind in factorizations.items() if kind.obeys.get(what) == "all"]
    if obeyed == "trees":
        trees = "constraints in which a head's options depend on one other head at most"
        raise ConfigError(
            f"{algorithm} with factorization {factorization.name!r} obeys {trees}",
            got=_told(spec),
            allowed=f"those, or factorization {' or '.join(map(repr, able))}",
        )
    some = [name for name, kind in factorizations.items() if kind.obeys.get(what) == "trees"]
    raise ConfigError(
        f"{algorithm} with factorization {factorization.name!r} does not obey constraints exactly",
        got=_told(spec),
        allowed=", ".join([*able, *(f"{name} (where they are a tree)" for name in some)]),
        fix=f"Use factorization={able[0]!r}." if able else None,
    )


def _told(spec: ActionSpec) -> str:
    """What the options of heads depend on."""
    told = []
    for link in spec.links:
        parents = " and ".join(spec.names[p] for p in link.parents)
        told.append(spec.names[link.child] + (f" by {parents}" if parents else " by itself"))
    return ", ".join(told)


def need_options(blueprint: Blueprint, name: str) -> None:
    """Refuses critics that branch over discrete heads if there are none: use `shared`."""
    if not blueprint.layout.num_discrete:
        raise ConfigError(
            f"SAC with factorization {name!r} branches over discrete heads, and there are none",
            got=str(blueprint.layout.spec),
            fix="Use factorization='shared', which is the same thing here.",
        )
