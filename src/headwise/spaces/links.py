"""Which options of a head go with which options of others, as tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.errors import SpaceError
from headwise.registry import unknown

MAX_COMBINATIONS = 1 << 20
"""Combinations of options that constraints are enumerated over."""

Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class Link:
    """Which options a head has, given those of the heads before it that it depends on.

    Several links to one head all hold. One that the environment gives speaks where its parents are
    in use; in one that is known, heads that are not in use may have any option.
    """

    child: int
    parents: tuple[int, ...]
    table: tuple[tuple[bool, ...], ...] | None = None
    """A row of the child's options for each combination of the parents', the last parent turning
    fastest; None: the environment gives it in every step."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", tuple(map(int, self.parents)))
        if self.table is not None:
            rows = tuple(tuple(map(bool, row)) for row in self.table)
            object.__setattr__(self, "table", rows)

    @classmethod
    def of(cls, form: Any) -> Link:
        """Reads what JSON has of a link."""
        return cls(int(form["child"]), form["parents"], form["table"])

    def num_rows(self, sizes: Sequence[int]) -> int:
        """How many combinations of the parents' options there are."""
        return math.prod(sizes[p] for p in self.parents)


class Forbid:
    """No action has all of these options at once: `Forbid(fire=1, reload=1)`.

    Several options of a head may be named, as in `Forbid(verb=0, target=(2, 3))`. A head that an
    action does not use has none of them.
    """

    def __init__(self, **options: int | Sequence[int]) -> None:
        self.options = {
            name: tuple(some) if isinstance(some, Sequence | set | range) else (some,)
            for name, some in options.items()
        }
        self.heads = tuple(options)
        if not self.options or any(
            isinstance(k, bool) or not isinstance(k, int | np.integer)
            for some in self.options.values()
            for k in some
        ):
            raise SpaceError(
                "Forbid names options of heads by their numbers",
                got=options,
                allowed="Forbid(fire=1, reload=1)",
            )

    def __repr__(self) -> str:
        told = (f"{n}={k[0] if len(k) == 1 else k}" for n, k in self.options.items())
        return f"Forbid({', '.join(told)})"

    def allows(self, action: Mapping[str, int]) -> bool:
        """Whether an action, options by head, is none of those forbidden."""
        return not all(action[name] in some for name, some in self.options.items())


class Require:
    """Every action meets a condition: `Require(lambda a: a["target"] > 0 or a["verb"] == 2)`.

    The condition reads options from a dict by head, and is asked once for every combination of the
    heads that it reads. It says nothing of actions that do not use all of these.

    Args:
        condition: From options by head to whether they may be chosen together.
        heads: The heads that it reads; None: found out by asking.
    """

    def __init__(
        self, condition: Callable[[Mapping[str, int]], Any], heads: Sequence[str] | None = None
    ) -> None:
        if not callable(condition):
            raise SpaceError(
                "Require takes a condition on actions",
                got=condition,
                allowed='Require(lambda a: a["target"] > 0 or a["verb"] == 2)',
            )
        self.condition = condition
        self.heads = None if heads is None else tuple(heads)

    def __repr__(self) -> str:
        name = getattr(self.condition, "__name__", type(self.condition).__name__)
        return f"Require({'a condition' if name == '<lambda>' else name})"

    def allows(self, action: Mapping[str, int]) -> bool:
        """Whether an action, options by head, meets the condition."""
        return bool(self.condition(action))


class Given:
    """The environment gives a table for a head in every step, in its masks: `Given(target="verb")`.

    Several heads may be named on either side: `Given(target="verb", amount=("verb", "target"))`.
    """

    def __init__(self, **parents: str | Sequence[str]) -> None:
        self.parents = {n: (p,) if isinstance(p, str) else tuple(p) for n, p in parents.items()}
        if not all(self.parents.values()) or not self.parents:
            raise SpaceError(
                "Given names heads, and those that their tables are by",
                got=parents,
                allowed='Given(target="verb")',
            )

    def __repr__(self) -> str:
        told = (f"{n}={p[0]!r}" if len(p) == 1 else f"{n}={p}" for n, p in self.parents.items())
        return f"Given({', '.join(told)})"


@dataclass(frozen=True, eq=False)
class GivenTable:
    """What `given` makes: a part of a mask that is a table by other heads' options."""

    heads: tuple[str, ...]
    table: NDArray[Any]


def given(heads: str | Sequence[str], table: Any) -> GivenTable:
    """The part of a mask that says which options a head has, given those of other heads.

    `{"target": given("verb", table)}` with a table (options of verb, options of target). By several
    heads it has an axis for each of them: `given(("verb", "target"), table)`. The agent must know
    of it: `constraints=[Given(target="verb")]`.
    """
    return GivenTable((heads,) if isinstance(heads, str) else tuple(heads), np.asarray(table))


def legal_actions(heads: Mapping[str, int], actions: Sequence[Sequence[int]]) -> dict[str, Any]:
    """A mask from a list of all legal combinations of a few heads, the last head given by the rest.

    Example:
        >>> mask = legal_actions({"verb": 2, "target": 3}, [(0, 1), (1, 0), (1, 2)])
        >>> mask["target"].table.astype(int).tolist()
        [[0, 1, 0], [1, 0, 1]]

    Args:
        heads: Options by head, in the order of the combinations. The agent must know of the tables:
            `Given(b="a", c=("a", "b"))` for the heads a, b and c.
        actions: The combinations, an option of each head.
    """
    names, sizes = tuple(heads), tuple(heads.values())
    legal = np.zeros(sizes, dtype=np.bool_)
    for action in actions:
        if len(action) != len(names) or not all(
            0 <= k < n for k, n in zip(action, sizes, strict=True)
        ):
            raise SpaceError(
                "this is no combination of these heads",
                got=tuple(action),
                allowed=f"an option of each of {dict(heads)}",
            )
        legal[tuple(action)] = True
    if not legal.any():
        raise SpaceError("a list of legal actions needs one", got=list(actions))
    mask: dict[str, Any] = {}
    for place, name in enumerate(names):
        table = legal.any(axis=tuple(range(place + 1, len(names))))
        mask[name] = given(names[:place], table) if place else table
    return mask


class Action(Mapping[str, int]):
    """Options by head, which remembers the heads that it was asked for."""

    def __init__(self, options: Mapping[str, int]) -> None:
        self._options = options
        self.asked: dict[str, None] = {}

    def __getitem__(self, name: str) -> int:
        if name not in self._options:
            raise unknown("head", name, self._options)
        self.asked[name] = None
        return self._options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)


@dataclass(frozen=True)
class Heads:
    """What constraints need to know of heads.

    Args:
        names: What they are called.
        sizes: Their options; 0 for a real number.
        use: From an array of actions (N, H) to which heads they use.
        decides: For each head the heads that decide whether it is in use.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    use: Callable[[NDArray[np.float64]], Truths]
    decides: tuple[tuple[int, ...], ...]

    def number(self, name: str, what: object) -> int:
        """The number of a head, which must have options."""
        if name not in self.names:
            raise unknown("head", name, self.names)
        head = self.names.index(name)
        if not self.sizes[head]:
            raise SpaceError(
                f"{what} is over {name!r}, which is a real number",
                got=what,
                allowed="heads with options",
                fix="Cut it into bins first, or let the environment clip it.",
            )
        return head

    def grid(self, heads: Sequence[int], what: object) -> NDArray[np.float64]:
        """All combinations of some heads' options as actions (N, H); other heads have option 0."""
        count = math.prod(self.sizes[h] for h in heads)
        if count > MAX_COMBINATIONS:
            raise SpaceError(
                f"{what} would be asked for too many combinations",
                got=f"{count:,} of {', '.join(self.names[h] for h in heads)}",
                allowed=f"{MAX_COMBINATIONS:,}",
                fix="Name fewer heads, or let the environment give a table: Given(target='verb').",
            )
        actions = np.zeros((count, len(self.names)))
        if not heads:
            return actions
        places = np.unravel_index(np.arange(count), [self.sizes[h] for h in heads])
        actions[:, list(heads)] = np.stack(places, axis=-1)
        return actions

    def by_name(self, action: NDArray[np.float64]) -> dict[str, int]:
        """The options of an action by head."""
        return {n: int(action[h]) for h, n in enumerate(self.names) if self.sizes[h]}


class Rule:
    """A constraint that is always the same, with the heads it is over and its truths.

    Args:
        source: Forbid, Require, or a link whose table is known.
    """

    def __init__(self, source: Forbid | Require | Link, heads: Heads) -> None:
        self.source = source
        if isinstance(source, Link):  # which accounts for heads that are not in use
            self.scope = tuple(sorted((*source.parents, source.child)))
            read = (*source.parents, source.child)
            actions = heads.grid(self.scope, source)
            table = np.array(source.table).reshape([heads.sizes[h] for h in read])
            good = table[tuple(actions[:, h].astype(int) for h in read)]
        else:
            read = self._read(source, heads)
            more = {d for h in read for d in heads.decides[h]}
            for head in more:
                heads.number(heads.names[head], f"{source!r}, by what decides its heads,")
            self.scope = tuple(sorted({*read, *more}))
            actions = heads.grid(self.scope, source)
            named = [heads.names[h] for h in read]
            options = (heads.by_name(action) for action in actions)
            good = np.array([source.allows(Action({n: a[n] for n in named})) for a in options])
            good |= ~heads.use(actions)[:, list(read)].all(-1)
        self.truths: Truths = good.reshape([heads.sizes[h] for h in self.scope])
        """Whether combinations of the scope's options are allowed."""

    def __repr__(self) -> str:
        return repr(self.source)

    def _read(self, source: Forbid | Require, heads: Heads) -> tuple[int, ...]:
        """The heads that a constraint reads: all that it asks for, whatever it is told of them."""
        if isinstance(source, Forbid):
            for name, some in source.options.items():
                size = heads.sizes[heads.number(name, source)]
                wrong = [k for k in some if not 0 <= k < size]
                if wrong:
                    raise SpaceError(
                        f"{source} forbids an option that head {name!r} lacks",
                        got=wrong[0],
                        allowed=f"options from 0 to {size - 1}",
                    )
        if source.heads is not None:
            return tuple(heads.number(name, source) for name in source.heads)
        assert isinstance(source, Require)
        known: tuple[int, ...] = ()
        while True:
            asked: dict[str, None] = {}
            options = {n: 0 for n in heads.names}
            for action in heads.grid(known, source):
                seen = Action(options | heads.by_name(action))
                source.allows(seen)
                asked |= seen.asked
            found = tuple(sorted({*known, *(heads.number(name, source) for name in asked)}))
            if not found:
                raise SpaceError(
                    "a condition on actions must read the options of a head",
                    got=source,
                    allowed='Require(lambda a: a["target"] > 0)',
                )
            if found == known:
                return known
            known = found
