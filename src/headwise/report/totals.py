"""Weighted sums of the mean scores of cells: what is compared in one place is one part of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain

from headwise.report.cells import Cell


@dataclass(frozen=True)
class Total:
    """A weighted sum of mean scores."""

    parts: tuple[Mapping[str, float], ...]
    """What is compared in one place: the weights of cells, by name. A cell is in one part."""
    unequal: bool = False
    """Whether it sets runs against each other that had unequal steps."""
    unlike: bool = False
    """Whether it sets runs against each other of other devices, products or engines."""

    @property
    def cells(self) -> frozenset[str]:
        """The names of the cells that it is a sum of."""
        return frozenset(chain.from_iterable(self.parts))

    def __sub__(self, other: Total) -> Total:
        theirs = ({name: -weight for name, weight in part.items()} for part in other.parts)
        return Total(
            apart([*self.parts, *theirs]),
            self.unequal or other.unequal,
            self.unlike or other.unlike,
        )


def shares(cells: Sequence[Cell], weight: float) -> dict[str, float]:
    """The weights of cells whose mean has a weight."""
    return {cell.name: weight / len(cells) for cell in cells}


def added(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    """The sum of two parts."""
    names = {**first, **second}
    return {name: first.get(name, 0.0) + second.get(name, 0.0) for name in names}


def apart(parts: Iterable[Mapping[str, float]]) -> tuple[Mapping[str, float], ...]:
    """Parts of which no two have a cell in common: those that have are one."""
    found: list[Mapping[str, float]] = []
    for part in parts:
        touching = [other for other in found if not other.keys().isdisjoint(part)]
        found = [other for other in found if other not in touching]
        found.append(reduce(added, touching, part))
    kept = ({name: weight for name, weight in part.items() if weight} for part in found)
    return tuple(part for part in kept if part)
