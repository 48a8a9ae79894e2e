"""One action spec seen as discrete, hybrid, continuous or zoomed, with the paper's binning.

A value goes to a bin by the floor rule, `b = min(floor((x - low) / width), bins - 1)`. A bin goes
to a value by the end-point rule, `low + b * (high - low) / (bins - 1)`, so that both ends can be
reached; the bin's center is the other choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from headwise.checks import is_whole
from headwise.errors import SpaceError
from headwise.registry import unknown
from headwise.spaces.action import (
    ActionSpec,
    BoolArray,
    Choice,
    Condition,
    FloatArray,
    Head,
    Range,
)
from headwise.spaces.zoom import Zoom

ViewKind: TypeAlias = Literal["discrete", "hybrid", "continuous", "zoom"]
BinRule: TypeAlias = Literal["endpoints", "centers"]

DEFAULT_BINS = 11
MAX_BINS = 2**16
"""More would be a slip of the pen, and networks that no memory holds."""


def bin_values(low: float, high: float, bins: int, rule: BinRule = "endpoints") -> FloatArray:
    """The value that each of the bins stands for, shape (bins,)."""
    if rule == "centers":
        return low + (np.arange(bins, dtype=np.float64) + 0.5) * ((high - low) / bins)
    if bins < 2:
        raise SpaceError(
            "end-point bins need both ends", got=f"{bins} bin", allowed="2 bins or more"
        )
    return np.linspace(low, high, bins, dtype=np.float64)


def bin_index(values: ArrayLike, low: ArrayLike, high: ArrayLike, bins: ArrayLike) -> FloatArray:
    """The bin that each value falls into, by the paper's floor rule; whole numbers as floats."""
    low, high, bins = (np.asarray(x, dtype=np.float64) for x in (low, high, bins))
    return np.minimum(np.floor((np.asarray(values) - low) / (high - low) * bins), bins - 1.0)


class View:
    """A spec as a learner is to see it, and the way between its actions and the native ones.

    In the `discrete` view every Range becomes a Choice of bins. In the `continuous` view every
    Choice becomes a Range from -1 to 1, cut into as many equal parts as it has options. In the
    `hybrid` view the first `discrete_heads` heads are discrete and the others continuous; without
    a number, a spec that is mixed stays as it is, and of one that is not, the first half is
    discrete. In the `zoom` view every Range becomes several Choices, each of which says where in
    the bin of the one before: see `Zoom`.

    Args:
        native: The spec of the environment.
        kind: "discrete", "hybrid", "continuous" or "zoom".
        bins: Bins for each Range that becomes a Choice: one number, or numbers by head name.
        discrete_heads: How many heads are discrete in the hybrid view.
        rule: What value a bin stands for.
        zoom_levels: Levels of each Range in the zoom view: one number, or numbers by head name;
            None means 3.
        zoom_bins: Bins of each level, likewise; None means 5.
    """

    def __init__(
        self,
        native: ActionSpec,
        kind: ViewKind,
        *,
        bins: int | Mapping[str, int] = DEFAULT_BINS,
        discrete_heads: int | None = None,
        rule: BinRule = "endpoints",
        zoom_levels: int | Mapping[str, int] | None = None,
        zoom_bins: int | Mapping[str, int] | None = None,
    ) -> None:
        for name, value, allowed in (("view", kind, ViewKind), ("bin rule", rule, BinRule)):
            if not isinstance(value, str) or value not in get_args(allowed):
                raise unknown(name, value, get_args(allowed))
        self.native = native
        self.kind = kind
        wants_choice = _discrete_mask(native, kind, discrete_heads)
        self.zoom = _zoom(native, kind, zoom_levels, zoom_bins)
        """How Ranges are levels of bins, in the zoom view."""
        if self.zoom is not None:
            self.flat: View = View(native, "discrete", bins=self.zoom.bins, rule=rule)
            """The view with one head for each native one: itself, but for the zoom view."""
            self.spec = self.zoom.spec
            self.driven: BoolArray = self.flat.driven
            return
        self.flat = self
        bins_of = _bins_by_head(native, bins)
        heads: list[Head] = []
        tables: list[FloatArray | None] = []
        for name, head, discrete in zip(native.names, native.heads, wants_choice, strict=True):
            table: FloatArray | None = None
            if discrete and isinstance(head, Range):
                table = bin_values(head.low, head.high, bins_of[name], rule)
                head = Choice(bins_of[name], ordered=True)
            elif not discrete and isinstance(head, Choice):
                head = Range(-1.0, 1.0, head.n)
            heads.append(head)
            tables.append(table)
        conditions = tuple(
            c if c is None or wants_choice[c.head] else _driven(c, native.cardinalities[c.head])
            for c in native.conditions
        )
        joined = {h for link in native.links for h in (link.child, *link.parents)}
        lost = [native.names[h] for h in sorted(joined) if not wants_choice[h]]
        if lost:
            raise SpaceError(
                f"the {kind} view makes heads continuous that constraints join",
                got=lost,
                allowed="heads that choose",
                fix="Use the discrete or the hybrid view.",
            )
        self.spec = ActionSpec(native.names, tuple(heads), conditions, native.links)
        self.driven = native.is_choice & ~self.spec.is_choice
        """Which native heads have options that numbers drive."""
        self._binned = np.array([table is not None for table in tables])
        width = max((len(table) for table in tables if table is not None), default=1)
        self._values = np.zeros((native.num_heads, width))
        for row, table in zip(self._values, tables, strict=True):
            if table is not None:
                row[: len(table)] = table

    def to_native(self, heads: ArrayLike) -> FloatArray:
        """Actions of this view, `(..., H)`, as actions of the native spec."""
        if self.zoom is not None:
            return self.flat.to_native(self.zoom.join(self.spec.check(heads)))
        values = self.spec.check(heads).copy()
        (binned,) = np.nonzero(self._binned)
        values[..., binned] = self._values[binned, values[..., binned].astype(np.intp)]
        driven = self.driven
        values[..., driven] = bin_index(
            values[..., driven], -1.0, 1.0, self.native.high[driven] + 1.0
        )
        return values

    def from_native(self, heads: ArrayLike) -> FloatArray:
        """Native actions `(..., H)` as actions of this view; a driven option is its center."""
        if self.zoom is not None:
            return self.zoom.split(self.flat.from_native(heads))
        values = self.native.check(heads).copy()
        binned, driven = self._binned, self.driven
        values[..., binned] = bin_index(
            values[..., binned],
            self.native.low[binned],
            self.native.high[binned],
            self.spec.high[binned] + 1.0,
        )
        options = self.native.high[driven] + 1.0
        values[..., driven] = (2.0 * values[..., driven] + 1.0) / options - 1.0
        return values


def _zoom(
    native: ActionSpec,
    kind: ViewKind,
    levels: int | Mapping[str, int] | None,
    bins: int | Mapping[str, int] | None,
) -> Zoom | None:
    if kind == "zoom":
        return Zoom(native, levels, bins)
    for name, value in (("zoom_levels", levels), ("zoom_bins", bins)):
        if value is not None:
            raise SpaceError(
                f"the {kind} view has no {name}",
                got=value,
                fix="Leave it out, or ask for the zoom view.",
            )
    return None


def _bins_by_head(native: ActionSpec, bins: int | Mapping[str, int]) -> dict[str, int]:
    if isinstance(bins, Mapping):
        for name in bins:
            if name not in native.names:
                raise unknown("head", name, native.names)
        by_head = {name: bins.get(name, DEFAULT_BINS) for name in native.names}
    else:
        by_head = dict.fromkeys(native.names, bins)
    for name, number in by_head.items():
        if not is_whole(number) or not 1 <= number <= MAX_BINS:
            raise SpaceError(
                f"head {name!r} needs a number of bins",
                got=number,
                allowed=f"a whole number from 1 to {MAX_BINS:,}",
            )
    return by_head


def _discrete_mask(native: ActionSpec, kind: ViewKind, discrete_heads: int | None) -> list[bool]:
    num_heads = native.num_heads
    if kind != "hybrid":
        if discrete_heads is not None:
            raise SpaceError(
                f"the {kind} view has no number of discrete heads",
                got=discrete_heads,
                fix="Leave it out, or ask for the hybrid view.",
            )
        return [kind == "discrete"] * num_heads
    if discrete_heads is None:
        if 0 < native.num_choices < num_heads:
            return [bool(choice) for choice in native.is_choice]
        discrete_heads = num_heads // 2
    if not 0 < discrete_heads < num_heads:
        raise SpaceError(
            f"a hybrid view of {num_heads} heads needs discrete and continuous ones",
            got=f"{discrete_heads} discrete",
            allowed=f"1 to {num_heads - 1}" if num_heads > 1 else "none: there is one head",
            fix="Use the discrete or the continuous view." if num_heads == 1 else None,
        )
    return [index < discrete_heads for index in range(num_heads)]


def _driven(condition: Condition, options: int) -> Condition:
    """The condition on an option, once its head is a Range from -1 to 1 cut into equal parts."""
    low = -np.inf if condition.low <= 0 else _first_of(condition.low, options)
    high = np.inf if condition.high >= options else _first_of(condition.high, options)
    return Condition(condition.head, low, high)


def _first_of(option: float, options: int) -> float:
    """The first number that drives an option: `2 * option / options - 1`, but for rounding.

    `bin_index` rounds as it goes, so the number is sought by halving, to the last bit: code that
    drives an option exactly at its edge must also be told that its parameters are in use.
    """
    edge = 2.0 * option / options - 1.0
    below, first = edge - 2.0**-50, edge + 2.0**-50
    while below < (middle := (below + first) / 2.0) < first:
        if bin_index(middle, -1.0, 1.0, options) < option:
            below = middle
        else:
            first = middle
    return first
