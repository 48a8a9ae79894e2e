"""A sweep: methods on tasks, their scores on one scale, and what they come to over tasks.

A `Total` is a weighted sum of the cells' mean scores: a mean over tasks, a difference of methods, a
difference of differences. A `Finding` is a number with its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, combinations
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from headwise.averages import CONFIDENCE
from headwise.report.cells import Cell, Lost, read_curves, unlike
from headwise.report.names import FACTORIZATIONS, in_order
from headwise.report.registry import published_steps
from headwise.report.statistics import (
    Contrast,
    Estimate,
    Sample,
    by_reference,
    by_seed,
    contrast,
    largest,
    least,
    min_max,
    quotient,
    sample,
    widest,
)
from headwise.report.statistics.aggregates import Array
from headwise.report.totals import Total, added, apart, shares
from headwise.study.records import Record

Where: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""Conditions on cells: task, env, view, algorithm, factorization, mode, apart."""
Method: TypeAlias = tuple[str, str]
"""A factorization, and what sets it apart from others of the same name; mostly nothing."""


USUAL_MODE = "dependent"
"""Of environments that have modes, or none, where a configuration does not say which."""


class Asked(NamedTuple):
    """A cell that a claim may need."""

    env: str
    mode: str
    """Its setting of that name; the usual one where it has none."""
    view: str
    algorithm: str
    factorization: str


class NotMeasuredError(Exception):
    """The store does not hold what a number needs."""


class SeveralConfigurationsError(NotMeasuredError):
    """The store holds it more than once, and does not say which of them is meant."""


class IncompleteError(NotMeasuredError):
    """The store holds a part of it, and what is missing is not missing by chance."""


@dataclass(frozen=True)
class Finding:
    """A number of a sweep with its interval."""

    at: Callable[[float], Estimate]
    """The number, with an interval of any confidence."""
    unequal: bool
    """Whether runs of unequal steps were set against each other."""
    cells: frozenset[str]
    """The names of the cells that it rests on."""
    unlike: bool = False
    """Whether runs of other devices, products or engines were set against each other."""

    @cached_property
    def found(self) -> Estimate:
        """The number with its 95 % interval."""
        return self.at(CONFIDENCE)


class Ratios(NamedTuple):
    """How many times as much of something, for each task that was looked at."""

    values: Array
    cells: frozenset[str]
    """The names of the cells that they rest on."""


@dataclass(frozen=True)
class Sweep:
    """The cells of a study that are to be compared with each other."""

    study: str
    variant: str
    cells: tuple[Cell, ...]
    asked: tuple[Asked, ...] = ()
    """The cells that it would have if it were whole, as far as anybody knows."""
    lost: tuple[Lost, ...] = ()
    """What has no cell because all of its runs failed."""
    by_range: bool = False
    """Whether figures and tables of scores have the paper's scale, too."""

    @property
    def title(self) -> str:
        """What its figures and tables are told apart by."""
        return ", ".join(part for part in (self.study, self.variant) if part)

    @property
    def tasks(self) -> list[str]:
        """The tasks, by name."""
        return sorted({cell.task for cell in self.cells})

    @cached_property
    def limits(self) -> dict[str, tuple[float, float]]:
        """The lowest and the highest point of any learning curve on each task.

        A run whose episodes were not kept counts with its final return.
        """
        read_curves(self.cells)
        found = {}
        for task in self.tasks:
            points = np.concatenate([cell.points for cell in self.cells if cell.task == task])
            points = points[np.isfinite(points)]
            found[task] = (float(points.min()), float(points.max())) if points.size else (0.0, 1.0)
        return found

    @property
    def is_evaluated(self) -> bool:
        """Whether its runs are ranked by greedy evaluation: all of them are, or none."""
        return any(cell.is_evaluated for cell in self.cells)

    @property
    def scale(self) -> str:
        """What the scale of `scaled` is, for captions."""
        greedy = "of greedy episodes at the end, " if self.is_evaluated else ""
        known = f"{greedy}0 is random play, 1 the best policy known"
        without = {c.task for c in self.cells if self._by_reference(c, np.zeros(1)) is None}
        if not without:
            return known
        range_ = "0 and 1 are the lowest and the highest point of any learning curve on the task"
        if without == set(self.tasks):
            return f"{greedy}{range_} here"
        return f"{known}; on {', '.join(sorted(without))}, where these are not known, {range_} here"

    def scaled(self, cell: Cell, values: Array) -> Array:
        """Returns of a cell on the common scale: by reference scores where its task has them."""
        scaled = self._by_reference(cell, values)
        return self.min_max(cell, values) if scaled is None else scaled

    def min_max(self, cell: Cell, values: Array) -> Array:
        """Returns of a cell on the paper's scale."""
        return min_max(values, *self.limits[cell.task])

    def _by_reference(self, cell: Cell, values: Array) -> Array | None:
        run = cell.runs[0]
        settings: dict[str, Any] = {**(run.config.get("env_settings") or {}), "view": cell.view}
        return None if self.by_range else by_reference(values, run.env, **settings)

    def where(self, **conditions: str | tuple[str, ...]) -> list[Cell]:
        """The cells that meet all conditions, and have scores."""
        return [cell for cell in self.every(**conditions) if cell.scores.size]

    def every(self, **conditions: str | tuple[str, ...]) -> list[Cell]:
        """The cells that meet all conditions, also those in which no episode has ended."""
        return [cell for cell in self.cells if _meets(cell, conditions)]

    def of(self, algorithm: str, method: Method) -> list[Cell]:
        """The cells of a method that have scores."""
        return self.where(algorithm=algorithm, factorization=method[0], apart=method[1])

    # --- over tasks, on the paper's scale -------------------------------------------------------

    def mean(self, by: Sequence[str] = ("task", "view"), **where: str | tuple[str, ...]) -> Total:
        """The mean of the cells that meet the conditions; cells alike in `by` count as one."""
        self._refuse_partial(by, where)
        groups = list(self._groups(by, where).values())
        _refuse_unfit(chain.from_iterable(groups))
        return Total(tuple(shares(cells, 1 / len(groups)) for cells in groups))

    def gap(self, ours: Where, theirs: Where, by: Sequence[str] = ("task", "view")) -> Total:
        """The mean difference of two kinds of cells over what both have in common."""
        common = self._common(ours, theirs, by)
        if not common:
            raise NotMeasuredError("no task has both sides")
        parts = [
            added(shares(first, 1 / len(common)), shares(second, -1 / len(common)))
            for first, second in common
        ]
        return Total(
            apart(parts),
            any(_steps(first) != _steps(second) for first, second in common),
            any(unlike([*first, *second]) for first, second in common),
        )

    def gaps(self, groups: Iterable[Where], by: Sequence[str] = ("task", "view")) -> list[Total]:
        """The differences of all pairs of several kinds of cells."""
        return [self.gap(ours, theirs, by) for ours, theirs in combinations(groups, 2)]

    def total(self, total: Total) -> Finding:
        """A weighted sum with its interval."""
        at = self._contrast(total).estimate
        return Finding(at, total.unequal, total.cells, total.unlike)

    def lead(self, ours: Where, others: Iterable[Where], by: Sequence[str] = ("task", "view")) -> (
        Finding
    ):  # fmt: skip
        """How far ahead of the best of the others: above zero is ahead of every one."""
        gaps = [self.gap(ours, other, by) for other in others]
        return _finding(partial(least, self._contrasts(gaps)), gaps)

    def spread(self, groups: Iterable[Where], by: Sequence[str] = ("task", "view")) -> Finding:
        """The distance between the best and the worst of several kinds of cells."""
        gaps = self.gaps(groups, by)
        return _finding(partial(widest, self._contrasts(gaps)), gaps)

    def spreads(self, above: Sequence[Total], below: Sequence[Total]) -> Finding:
        """One such distance over another, from the differences of all pairs of each."""
        first, second = self._contrasts(above), self._contrasts(below)
        return _finding(partial(quotient, first, second), [*above, *below])

    def best_return(self, **where: str | tuple[str, ...]) -> Finding:
        """The largest mean return of a cell that meets the conditions, not scaled."""
        self._refuse_partial(("task",), where)
        cells = self._found(where)
        _refuse_unfit(cells)
        best = partial(largest, [contrast([cell.scores]) for cell in cells])
        return Finding(best, False, frozenset(cell.name for cell in cells))

    def ratio(self, number: str, ours: Where, theirs: Where) -> Ratios:
        """How many times as much of a final number (time, parameters), for each common task."""
        pairs = self.pairs(ours, theirs)
        ratios = np.array([one.number(number) / other.number(number) for one, other in pairs])
        known = np.isfinite(ratios)
        if not known.any():
            raise NotMeasuredError(f"no run has {number}")
        if not known.all():
            raise IncompleteError(f"{number} is known of {known.sum()} of {known.size} comparisons")
        return Ratios(ratios, frozenset(cell.name for pair in pairs for cell in pair))

    def pairs(self, ours: Where, theirs: Where) -> list[tuple[Cell, Cell]]:
        """The cells of two methods, side by side for each task and view that both have."""
        common = self._common(ours, theirs, by=("task", "view"))
        return [(one, other) for (one,), (other,) in common]

    def support(self, names: Iterable[str]) -> tuple[int, float]:
        """The fewest seeds of some cells, and the least share of the paper's steps of a run."""
        cells = [self._by_name[name] for name in names]
        shares = [share_of_budget(run) for cell in cells for run in cell.runs]
        return min(cell.scores.size for cell in cells), min(shares)

    @cached_property
    def _by_name(self) -> dict[str, Cell]:
        return {cell.name: cell for cell in self.cells}

    def _found(self, where: Where) -> list[Cell]:
        cells = self.every(**where)
        if not cells:
            raise NotMeasuredError(f"no run with {_words(where)}")
        return cells

    def _common(
        self, ours: Where, theirs: Where, by: Sequence[str]
    ) -> list[tuple[list[Cell], list[Cell]]]:
        """The cells of both sides, wherever both have some that are alike in `by`."""
        self._refuse_partial(by, ours, theirs)
        first, second = self._groups(by, ours), self._groups(by, theirs)
        common = [(first[key], second[key]) for key in first if key in second]
        _refuse_unfit(cell for sides in common for side in sides for cell in side)
        return common

    def _groups(self, by: Sequence[str], where: Where) -> dict[tuple[str, ...], list[Cell]]:
        groups: dict[tuple[str, ...], list[Cell]] = {}
        for cell in self._found(where):
            groups.setdefault(tuple(_trait(cell, name) for name in by), []).append(cell)
        return groups

    def _refuse_partial(self, by: Sequence[str], *sides: Where) -> None:
        """Raises if cells are asked for, wherever all sides should have some, that are not here."""
        groups = [_asked(self.asked, by, where) for where in sides]
        keys = set.intersection(*(set(group) for group in groups))
        needed = {cell for group in groups for key in keys for cell in group[key]}
        missing = sorted(needed - self._there)
        if missing:
            first = missing[0]
            modes = {cell.mode for cell in self.asked if cell.env == first.env}
            mode = f" ({first.mode})" if len(modes) > 1 else ""
            raise IncompleteError(
                f"{len(missing)} of {len(needed)} cells have no run, such as {first.algorithm} "
                f"{first.factorization} of {first.env}{mode}, {first.view}"
            )

    @cached_property
    def _there(self) -> frozenset[Asked]:
        return frozenset(map(asked_of, self.cells))

    def _contrasts(self, totals: Iterable[Total]) -> list[Contrast]:
        return [self._contrast(total) for total in totals]

    def _contrast(self, total: Total) -> Contrast:
        return by_seed(
            [(weight, self._sample(self._by_name[name])) for name, weight in part.items()]
            for part in total.parts
        )

    def _sample(self, cell: Cell) -> Sample:
        return sample(self.min_max(cell, cell.scores), cell.seeds)


def methods_of(cells: Iterable[Cell]) -> list[Method]:
    """The methods that cells have, in order."""
    found = {(cell.factorization, cell.apart) for cell in cells}
    factors = in_order((f for f, _ in found), FACTORIZATIONS)
    return sorted(found, key=lambda method: (factors.index(method[0]), method[1]))


def share_of_budget(run: Record) -> float:
    """The steps of a run over those that were published; 1 where there is no such run."""
    published = published_steps(run.env, run.view, run.algorithm)
    return 1.0 if published is None else run.steps / published


def _steps(cells: Iterable[Cell]) -> set[int]:
    return {cell.steps for cell in cells}


def _finding(at: Callable[[float], Estimate], totals: Sequence[Total]) -> Finding:
    """A number that was made of several sums."""
    cells = frozenset(chain.from_iterable(total.cells for total in totals))
    unequal, mixed = (any(map(attrgetter(name), totals)) for name in ("unequal", "unlike"))
    return Finding(at, unequal, cells, mixed)


def _asked(
    cells: Iterable[Asked], by: Sequence[str], where: Where
) -> dict[tuple[str, ...], list[Asked]]:
    """The cells that meet conditions, by what they are alike in."""
    groups: dict[tuple[str, ...], list[Asked]] = {}
    for cell in cells:
        if all(getattr(cell, name) in _several(value) for name, value in where.items()):
            traits = ((cell.env, cell.mode) if n == "task" else (getattr(cell, n),) for n in by)
            groups.setdefault(tuple(chain.from_iterable(traits)), []).append(cell)
    return groups


def _refuse_unfit(cells: Iterable[Cell]) -> None:
    """Raises if some of the cells would go by one name but for their settings, or lack scores."""
    cells = list(cells)
    names = {cell.name.removesuffix(f"/{cell.apart}") for cell in cells if cell.apart}
    if names:
        raise SeveralConfigurationsError(f"several configurations of {min(names)}")
    for cell in cells:
        if cell.incomplete:
            raise IncompleteError(cell.incomplete)


def asked_of(cell: Cell) -> Asked:
    """What a cell is, as claims ask for it."""
    return Asked(*(_trait(cell, name) for name in Asked._fields))


def _trait(cell: Cell, name: str) -> str:
    if name == "env":
        return cell.runs[0].env
    if name == "mode":
        settings = cell.runs[0].config.get("env_settings") or {}
        return str(settings.get("mode", USUAL_MODE))
    return str(getattr(cell, name))


def _meets(cell: Cell, conditions: Where) -> bool:
    return all(_trait(cell, name) in _several(value) for name, value in conditions.items())


def _several(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _words(where: Where) -> str:
    parts = (value if isinstance(value, str) else " or ".join(value) for value in where.values())
    return ", ".join(parts) or "a score"
