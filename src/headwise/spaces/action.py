"""What a learner sees of an action space: an ordered tuple of named heads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwise.checks import is_whole
from headwise.errors import SpaceError
from headwise.spaces.constraints import links_of, ordered
from headwise.spaces.links import Heads, Link

MAX_OPTIONS = 2**24
"""Options that a network could have an output for; up to here float32 knows them all apart."""
_RUN = 4
"""So many equal heads of an array are told as one."""

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]


def as_array(value: Any) -> NDArray[Any]:
    """What was given as an array; one of objects if it is none, as a ragged list is."""
    try:
        return np.asarray(value)
    except (ValueError, TypeError, RuntimeError):
        return np.empty(0, dtype=object)


@dataclass(frozen=True, slots=True)
class Choice:
    """A head that picks one of `n` options, numbered from 0."""

    n: int
    ordered: bool = False
    """Whether the options are the bins of an interval, so that their order means something."""
    level: int | None = None
    """Of a Range seen by the zoom view, how often its interval was cut before; else None."""

    def __post_init__(self) -> None:
        if not is_whole(self.n) or not 1 <= self.n <= MAX_OPTIONS:
            raise SpaceError(
                "a Choice needs its number of options",
                got=self.n,
                allowed=f"a whole number from 1 up, to {MAX_OPTIONS:,}",
            )
        object.__setattr__(self, "n", int(self.n))

    def __str__(self) -> str:
        return f"Choice({self.n})"


@dataclass(frozen=True, slots=True)
class Range:
    """A head that picks one real number between `low` and `high`, both included."""

    low: float
    high: float
    levels: int = field(default=0, compare=False)
    """How many different things the number can mean, where they are few: an environment may round
    it. 0 where every number is another."""

    def __post_init__(self) -> None:
        try:
            good = 0.0 < float(self.high) - float(self.low) < math.inf
        except (TypeError, ValueError, OverflowError):
            good = False
        if not good:
            raise SpaceError(
                "a Range needs two finite bounds, the lower one first",
                got=f"[{self.low}, {self.high}]",
                allowed="low < high, and a finite distance between them",
            )
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    def __str__(self) -> str:
        return f"Range({self.low:g}, {self.high:g})"


Head: TypeAlias = Choice | Range


@dataclass(frozen=True, slots=True)
class Condition:
    """When a head is in use: an earlier head must be in use and its value in `[low, high)`.

    Parameterized actions (`gymnasium.spaces.OneOf`) give their parameters such a condition. An
    option `k` of a Choice is the interval `[k, k + 1)`.
    """

    head: int
    low: float
    high: float


_MOST_OPTIONS = 1 << 24


@dataclass(frozen=True)
class ActionSpec:
    """An ordered tuple of named heads: all that a factorization knows about an action space.

    An action is a *head vector*: one float64 for each head, the option's number for a Choice and
    the value itself for a Range. Arrays of them have shape `(..., num_heads)`.

    Examples:
        >>> spec = ActionSpec.of(gripper=Choice(3), wrist=Range(-1, 1))
        >>> spec.num_heads, spec.cardinalities, spec.joint_size
        (2, (3, 0), None)
    """

    names: tuple[str, ...]
    heads: tuple[Head, ...]
    conditions: tuple[Condition | None, ...] = ()
    """For each head when it is in use; None means always. Empty means always for every head."""
    constraints: tuple[Any, ...] = ()
    """Which options go together: `Forbid`, `Require` and `Given` as they are said, and links, the
    tables that they come to, once the spec is made."""

    def __post_init__(self) -> None:
        for name in ("names", "heads", "conditions", "constraints"):
            many = getattr(self, name)
            if isinstance(many, str) or not isinstance(many, Iterable):
                raise SpaceError(
                    f"{name} must be a list, with one for each head",
                    got=many,
                    allowed="ActionSpec(['move', 'aim'], [Choice(3), Range(0, 1)])",
                    fix="ActionSpec.of(move=Choice(3), aim=Range(0, 1)) does it, too.",
                )
            object.__setattr__(self, name, tuple(many))
        object.__setattr__(self, "conditions", self.conditions or (None,) * len(self.heads))
        if not self.heads:
            raise SpaceError("an action needs at least one head", got="no heads")
        if not len(self.names) == len(self.heads) == len(self.conditions):
            raise SpaceError(
                "names, heads and conditions must be equally many",
                got=f"{len(self.names)}, {len(self.heads)} and {len(self.conditions)}",
            )
        if len(set(self.names)) < len(self.names):
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
            raise SpaceError("two heads share a name", got=twice, fix="Rename one of them.")
        for name, head in zip(self.names, self.heads, strict=True):
            if not isinstance(head, Choice | Range):
                raise SpaceError(
                    f"head {name!r} is of an unknown kind", got=head, allowed="Choice or Range"
                )
        if self.num_heads * self.max_options > _MOST_OPTIONS:  # to which all heads are padded
            raise SpaceError(
                "an action has too many options",
                got=f"{self.num_heads:,} heads, of which one has {self.max_options:,} options",
                allowed=f"{_MOST_OPTIONS:,} for heads times the most options of one",
                fix="Use fewer bins, or cut the head with the most options into several.",
            )
        for index, condition in enumerate(self.conditions):
            if condition is not None and not (
                isinstance(condition, Condition) and 0 <= condition.head < index
            ):
                raise SpaceError(
                    f"the condition of head {self.names[index]!r} must name an earlier head",
                    got=condition,
                    allowed=f"a head from 0 to {index - 1}",
                )
        if self.constraints:
            object.__setattr__(self, "constraints", links_of(self.constraints, self._plain))

    @classmethod
    def of(cls, heads: Mapping[str, Head] | Iterable[Head] = (), **named: Head) -> ActionSpec:
        """A spec from `name=head` pairs, a mapping, or plain heads named `head_0`, `head_1`, ..."""
        if not isinstance(heads, Mapping):
            heads = {f"head_{i}": head for i, head in enumerate(heads)}
        merged = {**heads, **named}
        return cls(tuple(merged), tuple(merged.values()))

    @property
    def num_heads(self) -> int:
        """How many heads there are (H)."""
        return len(self.heads)

    @cached_property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of options of each head; 0 for a Range."""
        return tuple(head.n if isinstance(head, Choice) else 0 for head in self.heads)

    @cached_property
    def is_choice(self) -> BoolArray:
        """Which heads are Choices, shape (H,)."""
        return _frozen(np.array([isinstance(head, Choice) for head in self.heads]))

    @property
    def num_choices(self) -> int:
        """How many heads are Choices."""
        return int(self.is_choice.sum())

    @property
    def num_ranges(self) -> int:
        """How many heads are Ranges."""
        return self.num_heads - self.num_choices

    @property
    def max_options(self) -> int:
        """The largest number of options (K); 0 when every head is a Range."""
        return max(self.cardinalities)

    @cached_property
    def option_mask(self) -> BoolArray:
        """Which of the padded options exist, shape (H, K); a Range has none."""
        options = np.arange(self.max_options)
        return _frozen(options < np.array(self.cardinalities)[:, None])

    @cached_property
    def joint_size(self) -> int | None:
        """The number of joint actions (exact, as a Python int), or None if a head is a Range."""
        return math.prod(self.cardinalities) if self.is_choice.all() else None

    @cached_property
    def low(self) -> FloatArray:
        """The smallest value of each head, shape (H,); 0 for a Choice."""
        values = [0.0 if isinstance(head, Choice) else head.low for head in self.heads]
        return _frozen(np.array(values))

    @cached_property
    def high(self) -> FloatArray:
        """The largest value of each head, shape (H,); n - 1 for a Choice."""
        values = [head.n - 1.0 if isinstance(head, Choice) else head.high for head in self.heads]
        return _frozen(np.array(values))

    @cached_property
    def idle(self) -> FloatArray:
        """The value that a head has when it is not in use, shape (H,): option 0, or the middle."""
        return _frozen(np.where(self.is_choice, 0.0, 0.5 * (self.low + self.high)))

    # --- constraints ----------------------------------------------------------------------------

    def constrained(self, *constraints: Any) -> ActionSpec:
        """The same heads under more constraints."""
        return self.under(constraints)

    def under(self, constraints: Sequence[Any]) -> ActionSpec:
        """The same heads under more constraints, as they are said or as a file has them."""
        if not isinstance(constraints, Sequence) or isinstance(constraints, str):
            raise SpaceError(
                "constraints are a list", got=constraints, allowed="[Forbid(fire=1, reload=1)]"
            )
        some = [Link.of(one) if isinstance(one, Mapping) else one for one in constraints]
        return replace(self, constraints=(*self.constraints, *some)) if some else self

    @property
    def links(self) -> tuple[Link, ...]:
        """The tables of all constraints."""
        return self.constraints

    @cached_property
    def given(self) -> tuple[Link, ...]:
        """Those that the environment gives in every step, in the order of a mask's extra rows."""
        return tuple(link for link in self.links if link.table is None)

    @cached_property
    def mask_rows(self) -> int:
        """Rows of a mask: one for each head, and one for each row of a table that is given."""
        return self.num_heads + sum(link.num_rows(self.cardinalities) for link in self.given)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The heads in their own order, but each after those that it depends on."""
        return tuple(ordered(self._plain, self.links))

    @cached_property
    def full_mask(self) -> BoolArray:
        """What may be chosen where no mask is given, (rows, K): see `mask_rows`."""
        rows = [self.option_mask | ~self.is_choice[:, None]]
        for link in self.given:
            own = self.option_mask[link.child]
            rows.append(np.broadcast_to(own, (link.num_rows(self.cardinalities), len(own))))
        return _frozen(np.concatenate(rows))

    @property
    def _plain(self) -> Heads:
        decides = tuple(() if c is None else (c.head,) for c in self.conditions)
        every = list(decides)
        for head, some in enumerate(decides):  # conditions name earlier heads
            every[head] = tuple({*some, *(d for h in some for d in every[h])})
        return Heads(self.names, self.cardinalities, self.active, tuple(every))

    # --- actions --------------------------------------------------------------------------------

    @property
    def is_conditional(self) -> bool:
        """Whether some head is in use only under a condition."""
        return any(condition is not None for condition in self.conditions)

    def active(self, heads: ArrayLike) -> BoolArray:
        """Which heads are in use in each action, shape (..., H)."""
        values = np.asarray(heads, dtype=np.float64)
        in_use = np.ones(values.shape, dtype=np.bool_)
        for index, condition in enumerate(self.conditions):
            if condition is not None:
                parent = values[..., condition.head]
                in_use[..., index] = (
                    in_use[..., condition.head]
                    & (condition.low <= parent)
                    & (parent < condition.high)
                )
        return in_use

    def canonical(self, heads: ArrayLike) -> FloatArray:
        """The same actions with every head that is not in use set to its idle value."""
        values = np.array(heads, dtype=np.float64)
        return np.where(self.active(values), values, self.idle) if self.is_conditional else values

    def sample(self, rng: np.random.Generator, batch: int | None = None) -> FloatArray:
        """Uniformly random head vectors: `(H,)`, or `(batch, H)` when a batch is asked for."""
        unit = rng.random((1 if batch is None else batch, self.num_heads))
        options = np.floor(unit * (self.high + 1.0))
        reals = np.minimum(self.low + unit * (self.high - self.low), self.high)
        values = np.where(self.is_choice, options, reals)
        return values[0] if batch is None else values

    def check(self, heads: ArrayLike) -> FloatArray:
        """The head vectors as float64, or a SpaceError that names the first bad head and value."""
        values = as_array(heads)
        if values.dtype.kind not in "fiub":
            raise SpaceError("head values must be numbers", got=f"dtype {values.dtype}")
        if values.ndim == 0 or values.shape[-1] != self.num_heads:
            raise SpaceError(
                "head vectors have the wrong shape",
                got=values.shape,
                allowed=f"(..., {self.num_heads}), one value for each of {_listed(self.names)}",
            )
        single = values.dtype == np.float32
        values = values.astype(np.float64, copy=False)
        # A float32 that is the rounding of a bound means that bound: learners compute in float32.
        low, high = (_rounded(self.low), _rounded(self.high)) if single else (self.low, self.high)
        good = (low <= values) & (values <= high)
        if self.num_choices:
            good &= ~self.is_choice | (values == np.floor(values))
        if not good.all():
            *row, index = np.argwhere(~good)[0]
            where = f" of action {tuple(map(int, row))}" if row else ""
            raise SpaceError(
                f"head {self.names[index]!r}{where} is out of range",
                got=values[(*row, index)],
                allowed=_allowed(self.heads[index]),
            )
        return np.clip(values, self.low, self.high) if single else values

    def __str__(self) -> str:
        return ", ".join(f"{name}: {head}" for name, head in self._together())

    def _together(self) -> Iterator[tuple[str, Head]]:
        """Names and heads, where four or more equal ones of an array are named as one."""
        parts = [_element(name) for name in self.names]
        first = 0
        while first < len(parts):
            (base, start), head, last = parts[first], self.heads[first], first + 1
            while start is not None and last < len(parts) and self.heads[last] == head:
                if parts[last] != (base, start + last - first):
                    break
                last += 1
            if last - first < _RUN:
                last = first + 1
                yield self.names[first], head
            else:
                yield f"{base}[{start}..{parts[last - 1][1]}]", head
            first = last


def _element(name: str) -> tuple[str, int | None]:
    """The array and the place in it that a name like `joints[3]` speaks of."""
    base, bracket, index = name.removesuffix("]").rpartition("[")
    return (base, int(index)) if bracket and index.isdecimal() else (name, None)


def _allowed(head: Head) -> str:
    if isinstance(head, Choice):
        return f"whole numbers from 0 to {head.n - 1}"
    return f"finite numbers from {head.low:g} to {head.high:g}"


def _listed(names: tuple[str, ...], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} heads)"


def _rounded(bound: FloatArray) -> FloatArray:
    return bound.astype(np.float32).astype(np.float64)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
