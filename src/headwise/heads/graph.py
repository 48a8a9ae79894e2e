"""Which heads of an action look at which others, and in how many steps they can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Graph:
    """Heads, each with those that it looks at: a directed graph without cycles.

    Args:
        parents: For each head the heads that it looks at.
        before: For each head those that must be chosen before it; None: those that it looks at.
    """

    parents: tuple[tuple[int, ...], ...]
    before: tuple[tuple[int, ...], ...] | None = None

    @classmethod
    def chain(cls, order: Sequence[int]) -> Graph:
        """Every head looks at all those before it."""
        places = {head: place for place, head in enumerate(order)}
        return cls(tuple(tuple(order[: places[head]]) for head in range(len(order))))

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The heads that can be chosen at once, one level after another: as many as it is deep."""
        waits = [set(heads) for heads in self.before or self.parents]
        levels: list[tuple[int, ...]] = []
        done: set[int] = set()
        while len(done) < len(waits):
            level = tuple(h for h, some in enumerate(waits) if h not in done and some <= done)
            assert level, "the graph has a cycle"
            levels.append(level)
            done.update(level)
        return tuple(levels)

    @property
    def order(self) -> list[int]:
        """The heads in an order in which they can be chosen."""
        return [head for level in self.levels for head in level]

    def only(self, first: int, count: int) -> Graph:
        """Some of the heads, numbered from 0, as if there were no others."""

        def own(many: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
            some = range(first, first + count)
            return tuple(tuple(p - first for p in many[h] if p in some) for h in some)

        return Graph(own(self.parents), None if self.before is None else own(self.before))

    def columns(self, head: int, first: Sequence[int], end: int) -> list[tuple[int, int]]:
        """The runs of columns that a head sees, where heads have their columns in `order`.

        Args:
            head: The head.
            first: The first column of each head.
            end: How many columns there are.
        """
        ends = dict(zip(self.order, [*(first[h] for h in self.order[1:]), end], strict=True))
        runs: list[tuple[int, int]] = []
        for parent in sorted(self.parents[head], key=lambda h: first[h]):
            start, stop = first[parent], ends[parent]
            if runs and sum(runs[-1]) == start:
                start = runs.pop()[0]
            runs.append((start, stop - start))
        return runs


def runs_of(heads: Sequence[int]) -> list[tuple[int, int]]:
    """Heads in runs of neighbors: the first of each, and how many."""
    runs: list[tuple[int, int]] = []
    for head in sorted(heads):
        if runs and sum(runs[-1]) == head:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((head, 1))
    return runs
