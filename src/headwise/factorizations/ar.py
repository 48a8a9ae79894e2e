"""Auto-regressive, the chain rule: each head's network sees the state and heads before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from headwise.added import added
from headwise.errors import ConfigError
from headwise.factorizations.action_critic import ActionCritic
from headwise.factorizations.base import Factorization, factorizations
from headwise.factorizations.chain import ChainPolicy
from headwise.factorizations.chain_actor import ChainActor
from headwise.factorizations.chain_values import ChainValue
from headwise.factorizations.critics import ValueCritic
from headwise.heads.action_value import Actor, DiscreteValue, SoftValue
from headwise.heads.blueprint import Blueprint, Critic, Policy
from headwise.heads.graph import Graph
from headwise.registry import unknown
from headwise.spaces import ActionSpec
from headwise.spaces.zoom import parents_with_levels, with_levels


@factorizations.register("ar")
@dataclass(frozen=True, kw_only=True)
class AR(Factorization):
    """A network for every head that sees heads before it: the chain rule.

    Example:
        >>> AR(parents={"target": ("verb",), "x": ("target",), "y": ("target",)}).parents["x"]
        ('target',)
    """

    name: ClassVar[str] = "ar"
    obeys: ClassVar[Mapping[str, Literal["all", "trees"]]] = {
        "policy": "all",
        "value": "all",
        "twins": "all",
    }
    joint_ratio: ClassVar[bool] = True
    order: tuple[str, ...] | None = None
    """Names of the heads in the order in which they are chosen, each seeing all before it; the
    spec's own if not given. SAC draws continuous heads before discrete ones whatever the spec says,
    because its critics choose options given the numbers: an order that says otherwise is refused
    there."""
    parents: dict[str, tuple[str, ...]] | None = added(None)
    """Which heads each head sees, in the place of an order; a head that is not named sees none.
    Heads whose parents are chosen are chosen at once, so that an action takes as many steps as the
    graph is deep. In the zoom view a head's name stands for all its levels, and a level sees those
    before it."""

    def __post_init__(self) -> None:
        if self.parents is not None:
            object.__setattr__(self, "parents", _named(self.parents))
        super().__post_init__()
        if self.order is not None and self.parents is not None:
            raise ConfigError(
                "an order is a chain, and parents are another graph",
                got=f"order={self.order} and parents={self.parents}",
                allowed="one of them",
            )

    def check(self, spec: ActionSpec) -> None:
        """The order or the graph must fit the spec."""
        check_order(spec, None if self.order is None else with_levels(spec, self.order))
        graph = None if self.parents is None else parents_with_levels(spec, self.parents)
        check_parents(spec, graph)

    def policy(self, blueprint: Blueprint) -> Policy:
        """A policy network for each head."""
        return ChainPolicy(blueprint, self._graph(blueprint))

    def critic(self, blueprint: Blueprint) -> Critic:
        """One value of the state."""
        return ValueCritic(blueprint)

    def value(self, blueprint: Blueprint) -> DiscreteValue:
        """V and an advantage network for each head."""
        return ChainValue(blueprint, self._graph(blueprint))

    def twins(self, blueprint: Blueprint) -> SoftValue:
        """Advantage networks of discrete heads given continuous ones; or values of the action."""
        self._need_numbers_first(blueprint)
        discrete = blueprint.layout.num_discrete
        if not discrete:
            return ActionCritic(blueprint, copies=2)
        return ChainValue(blueprint, self._graph(blueprint).only(0, discrete), copies=2)

    def actor(self, blueprint: Blueprint) -> Actor:
        """An actor for each continuous head."""
        discrete, heads = blueprint.layout.num_discrete, blueprint.layout.num_heads
        return ChainActor(blueprint, self._graph(blueprint).only(discrete, heads - discrete))

    def _graph(self, blueprint: Blueprint) -> Graph:
        """Which of the learner's heads look at which."""
        layout = blueprint.layout
        place = layout.names.index
        if self.parents is None:
            order = None if self.order is None else with_levels(layout.spec, self.order)
            return Graph.chain(list(layout.order if order is None else map(place, order)))
        told = parents_with_levels(layout.spec, self.parents)
        named = [told.get(name, ()) for name in layout.names]
        parents = tuple(tuple(place(parent) for parent in some) for some in named)
        before = [set(some) for some in parents]
        for head, condition in enumerate(layout.conditions):
            before[head] |= set() if condition is None else {condition.head}
        for link in () if layout.links is None else layout.links.links:
            before[link.child] |= set(link.parents)
        return Graph(parents, tuple(tuple(sorted(some)) for some in before))

    def _need_numbers_first(self, blueprint: Blueprint) -> None:
        graph, discrete = self._graph(blueprint), blueprint.layout.num_discrete
        told, names = self.order or self.parents, blueprint.layout.names
        late = [
            h for h in range(discrete, len(names)) if any(p < discrete for p in graph.parents[h])
        ]
        if told is not None and late:
            given = (
                f"order={self.order}" if self.order else f"{names[late[0]]!r} sees a discrete head"
            )
            raise ConfigError(
                "SAC draws continuous heads before discrete ones",
                got=given,
                allowed="continuous heads that see no discrete one",
                fix="Leave the order out, or put the continuous heads first.",
            )


def _named(parents: object) -> dict[str, tuple[str, ...]]:
    """Parents by head, each a tuple of names; one name may stand by itself."""
    named = dict(parents) if isinstance(parents, Mapping) else {}
    named = {h: (p,) if isinstance(p, str) else p for h, p in named.items()}
    good = all(isinstance(p, list | tuple) for p in named.values())
    if not good or not isinstance(parents, Mapping):
        raise ConfigError(
            "parents are the names of the heads that each head sees",
            got=parents,
            allowed="{'target': ('verb',)}",
        )
    return named


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
    for link in spec.links:
        late = [p for p in link.parents if numbers.index(p) > numbers.index(link.child)]
        if late:
            raise ConfigError(
                "a head cannot be chosen before one that its legal options depend on",
                got=f"{spec.names[link.child]!r} before {spec.names[late[0]]!r}",
                fix="Leave the order out, or put that one first.",
            )


def check_parents(spec: ActionSpec, parents: Mapping[str, Sequence[str]] | None) -> None:
    """Refuses parents that are no graph over the heads of a spec without cycles."""
    for name in (
        [] if parents is None else [*parents, *(p for some in parents.values() for p in some)]
    ):
        if name not in spec.names:
            raise unknown("head", name, spec.names)
    graph = {name: {*(parents or {}).get(name, ())} for name in spec.names}
    for name, condition in zip(spec.names, spec.conditions, strict=True):
        if condition is not None:
            graph[name].add(spec.names[condition.head])
    for link in spec.links:
        graph[spec.names[link.child]].update(spec.names[p] for p in link.parents)
    done: set[str] = set()
    while len(done) < len(graph):
        level = {name for name, some in graph.items() if name not in done and some <= done}
        if not level:
            raise ConfigError(
                "parents go around in a circle, so that no head can be chosen first",
                got=" -> ".join(_cycle({n: p - done for n, p in graph.items() if n not in done})),
                allowed="a graph without cycles; a parameter comes after what puts it in use",
            )
        done |= level


def _cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Heads each of which waits for the next, where every head waits for one."""
    path = [next(iter(graph))]
    while path[-1] not in path[:-1]:
        path.append(min(graph[path[-1]]))
    return path[path.index(path[-1]) :]
