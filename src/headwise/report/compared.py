"""What `Results` answers: numbers of groups with their intervals, and differences of two sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headwise.report.statistics import Contrast, Estimate
from headwise.report.tables.table import interval_text, text_of
from headwise.study.html import html_table


@dataclass(frozen=True)
class GroupEstimate:
    """A number of one group with its 95 % interval."""

    group: tuple[Any, ...]
    """The values by which it is grouped."""
    estimate: Estimate
    runs: int
    tasks: int
    """Sets of runs that are alike in all but the seed."""
    without_score: int = 0
    """Runs that failed, or ended no episode: what is left may be the lucky ones."""


@dataclass(frozen=True)
class Estimates:
    """Numbers of several groups, the same at every call."""

    what: str
    by: tuple[str, ...]
    scale: str
    groups: tuple[GroupEstimate, ...]

    def __iter__(self) -> Iterator[GroupEstimate]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, group: Any) -> Estimate:
        """The number of a group, by its value, or by its values where there are several."""
        wanted = group if isinstance(group, tuple) else (group,)
        for one in self.groups:
            if one.group == wanted:
                return one.estimate
        raise KeyError(group)

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                *map(str, one.group),
                text_of(one.estimate.value),
                interval_text(one.estimate.low, one.estimate.high),
                str(one.runs),
                str(one.tasks),
                str(one.without_score),
            )
            for one in self.groups
        ]

    @property
    def _columns(self) -> tuple[str, ...]:
        return (*self.by, self.what, "95 % interval", "runs", "tasks", "no score")

    def __str__(self) -> str:
        rows = [self._columns, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(x.ljust(n) for x, n in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(line.rstrip() for line in lines) + f"\n{self.scale}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.what, self._columns, self._rows(), self.scale)


@dataclass(frozen=True, repr=False)
class Difference:
    """The mean of one side minus that of the other, over the tasks that both have.

    Runs of one task and one seed are paired; tasks are summed by Satterthwaite.
    """

    contrast: Contrast = field(repr=False)
    tasks: int
    seeds: int
    """The fewest runs of a task on a side."""
    scale: str
    incomplete: str = ""
    """Why it says nothing of the two: runs without a score are not missing by chance."""
    unequal: bool = False
    """Whether runs of unequal steps were set against each other."""
    unlike: bool = False
    """Whether runs of other devices, products or engines were set against each other."""

    @property
    def estimate(self) -> Estimate:
        """The difference with its 95 % interval."""
        low, high = self.contrast.interval()
        ends = (float(end) if np.isfinite(end) else float("nan") for end in (low, high))
        return Estimate(float(self.contrast.value), *ends)

    @property
    def p(self) -> float:
        """Two-sided, of there being none; not corrected for how many are looked at."""
        return float(self.contrast.p)

    def __str__(self) -> str:
        told = f"{self.estimate}, p = {self.p:.2g}, {self.tasks} tasks, {self.seeds} seeds"
        return told + (f"; incomplete: {self.incomplete}" if self.incomplete else "")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        columns = ("difference", "95 % interval", "p", "tasks", "seeds")
        found = self.estimate
        numbers = (text_of(found.value), interval_text(found.low, found.high), f"{self.p:.2g}")
        row = (*numbers, str(self.tasks), str(self.seeds))
        return html_table("Difference", columns, [row], self.incomplete or self.scale)
