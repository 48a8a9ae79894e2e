"""Heads that refine an interval from coarse to fine: the digits of a bin's number.

With 3 levels of 5 bins the first head says which fifth of the interval, the second which fifth of
that, and the third which fifth of that again: 125 values from 15 options (arXiv 2407.07787,
2502.00288).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headwise.checks import is_whole
from headwise.errors import SpaceError
from headwise.registry import unknown
from headwise.spaces.action import ActionSpec, Choice, Condition, FloatArray, Head
from headwise.spaces.links import Link

DEFAULT_LEVELS = 3
DEFAULT_ZOOM_BINS = 5
MAX_VALUES = 2**16
"""Values that all levels of a head can tell apart, at most."""


class Zoom:
    """A spec whose Ranges are levels of bins, and the way to its flat bins and back.

    The levels of a head `aim` are Choices named `aim[0]`, the coarsest, `aim[1]`, and so on. Other
    heads stay as they are.

    Args:
        native: The spec of the environment.
        levels: Levels of each Range: one number, or numbers by head name; None means 3.
        bins: Bins of each level: one number, or numbers by head name; None means 5.
    """

    def __init__(
        self,
        native: ActionSpec,
        levels: int | Mapping[str, int] | None = None,
        bins: int | Mapping[str, int] | None = None,
    ) -> None:
        ranges = [n for n, choice in zip(native.names, native.is_choice, strict=True) if not choice]
        if not ranges:
            raise SpaceError(
                "the zoom view refines continuous heads, and this action has none",
                got=str(native),
                fix="Use the discrete view, or leave the view out.",
            )
        levels_of = _by_head("zoom_levels", ranges, levels, DEFAULT_LEVELS, 1)
        bins_of = _by_head("zoom_bins", ranges, bins, DEFAULT_ZOOM_BINS, 2)
        self.bins: dict[str, int] = {}
        """How many values each Range has with all its levels, by its name."""
        names: list[str] = []
        heads: list[Head] = []
        weights: list[int] = []
        sources: list[int] = []
        for index, (name, head) in enumerate(zip(native.names, native.heads, strict=True)):
            if isinstance(head, Choice):
                names, heads, weights = [*names, name], [*heads, head], [*weights, 1]
                sources.append(index)
                continue
            count, base = levels_of[name], bins_of[name]
            if base**count > MAX_VALUES:
                raise SpaceError(
                    f"the levels of head {name!r} tell too many values apart",
                    got=f"{count} levels of {base} bins",
                    allowed=f"{MAX_VALUES:,} values",
                    fix="Use fewer levels or bins.",
                )
            self.bins[name] = base**count
            for level in range(count):
                names.append(f"{name}[{level}]")
                heads.append(Choice(base, level=level))
                weights.append(base ** (count - 1 - level))
                sources.append(index)
        self.sources = np.array(sources)
        """The native head that each head is of."""
        self._weights = np.array(weights, dtype=np.float64)
        self._options = np.array([h.n if isinstance(h, Choice) else 1 for h in heads], dtype=float)
        first = [sources.index(h) for h in range(native.num_heads)]
        self.spec = ActionSpec(
            tuple(names),
            tuple(heads),
            tuple(_moved(native, native.conditions[h], first) for h in sources),
            tuple(
                Link(first[link.child], tuple(first[p] for p in link.parents), link.table)
                for link in native.links
            ),
        )
        """What the learner sees."""

    @property
    def matrix(self) -> FloatArray:
        """What head vectors are multiplied by to have the numbers of flat bins, (H, native H)."""
        columns = np.arange(self.sources[-1] + 1)
        return np.where(self.sources[:, None] == columns, self._weights[:, None], 0.0)

    def join(self, heads: FloatArray) -> FloatArray:
        """Actions `(..., H)` with one number of a flat bin for each Range."""
        joined: FloatArray = heads @ self.matrix
        return joined

    def split(self, flat: FloatArray) -> FloatArray:
        """The digits of flat bins, coarse to fine."""
        digits: FloatArray = np.floor(flat[..., self.sources] / self._weights) % self._options
        return digits


def levels_of(spec: ActionSpec) -> dict[str, tuple[str, ...]]:
    """The levels of each zoomed head, coarse to fine, by its name in the environment."""
    found: dict[str, tuple[str, ...]] = {}
    for name, head in zip(spec.names, spec.heads, strict=True):
        if isinstance(head, Choice) and head.level is not None:
            whole = name.removesuffix(f"[{head.level}]")
            found[whole] = (*found.get(whole, ()), name)
    return found


def with_levels(spec: ActionSpec, names: Sequence[str]) -> tuple[str, ...]:
    """Names of heads with all levels of a head that is named as the environment does."""
    levels = levels_of(spec)
    return tuple(one for name in names for one in levels.get(name, (name,)))


def parents_with_levels(
    spec: ActionSpec, parents: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Parents of every head, where a level has those of its head and the levels before it."""
    found = {name: with_levels(spec, some) for name, some in parents.items()}
    for whole, levels in levels_of(spec).items():
        every = found.pop(whole, ())
        for place, name in enumerate(levels):
            seen = (*every, *found.get(name, ()), *levels[:place])
            found[name] = tuple(dict.fromkeys(seen))
    return found


def _by_head(
    what: str,
    ranges: Sequence[str],
    given: int | Mapping[str, int] | None,
    default: int,
    least: int,
) -> dict[str, int]:
    """A number for each Range, from one number or from numbers by name."""
    by_name = given if isinstance(given, Mapping) else {}
    for name in by_name:
        if name not in ranges:
            raise unknown("continuous head", name, ranges)
    every = given if given is not None and not isinstance(given, Mapping) else default
    numbers = {name: by_name.get(name, every) for name in ranges}
    for name, number in numbers.items():
        if not is_whole(number) or not least <= number <= MAX_VALUES:
            raise SpaceError(
                f"{what} of head {name!r} must be a number that refines it",
                got=number,
                allowed=f"a whole number from {least} up",
            )
    return numbers


def _moved(native: ActionSpec, condition: Condition | None, first: list[int]) -> Condition | None:
    """A condition, for where its head has gone."""
    if condition is None:
        return None
    if not native.is_choice[condition.head]:
        raise SpaceError(
            "a head that puts others in use cannot be zoomed",
            got=native.names[condition.head],
            allowed="heads in use under a discrete head",
        )
    return Condition(first[condition.head], condition.low, condition.high)
