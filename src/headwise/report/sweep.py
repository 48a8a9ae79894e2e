"""A sweep: methods on tasks, their scores on one scale, and means with bootstrap samples.

A `Draws` is an array whose first entry is a number as measured and whose others are the same number
in bootstrap samples of the runs. Arithmetic on draws is arithmetic on numbers with their intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwise.report.cells import Cell, cells_of, read_curves
from headwise.report.names import generator_for
from headwise.report.published import budget
from headwise.report.statistics import by_reference, min_max
from headwise.report.statistics.aggregates import Array
from headwise.report.statistics.bootstrap import SAMPLES, draw_counts
from headwise.report.store import RunRecord

Draws: TypeAlias = NDArray[np.float64]
Where: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""Conditions on cells: task, env, view, algorithm, factorization, mode."""


class NotMeasuredError(Exception):
    """The store does not hold what a number needs."""


@dataclass(frozen=True)
class Sweep:
    """The cells of a study that are to be compared with each other."""

    study: str
    variant: str
    cells: tuple[Cell, ...]

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
            cells = [cell for cell in self.cells if cell.task == task]
            points = np.concatenate([*(c.curves.ravel() for c in cells), *map(_lone_scores, cells)])
            points = points[np.isfinite(points)]
            found[task] = (float(points.min()), float(points.max())) if points.size else (0.0, 1.0)
        return found

    @cached_property
    def has_references(self) -> bool:
        """Whether every task has reference scores."""
        return all(_by_reference(cell, np.zeros(1)) is not None for cell in self.cells)

    @property
    def scale(self) -> str:
        """What the scale of `scaled` is, for captions."""
        if self.has_references:
            return "0 is random play, 1 the best policy known"
        return "0 and 1 are the worst and the best on the task"

    def scaled(self, cell: Cell, values: Array) -> Array:
        """Returns of a cell on the common scale: by reference scores where all tasks have them."""
        if self.has_references:
            scaled = _by_reference(cell, values)
            assert scaled is not None
            return scaled
        return self.min_max(cell, values)

    def min_max(self, cell: Cell, values: Array) -> Array:
        """Returns of a cell on the paper's scale."""
        return min_max(values, *self.limits[cell.task])

    def where(self, **conditions: str | tuple[str, ...]) -> list[Cell]:
        """The cells that meet all conditions, and have scores."""
        return [cell for cell in self.every(**conditions) if cell.scores.size]

    def every(self, **conditions: str | tuple[str, ...]) -> list[Cell]:
        """The cells that meet all conditions, also those in which no episode has ended."""
        return [cell for cell in self.cells if _meets(cell, conditions)]

    # --- means with bootstrap samples, on the paper's scale -------------------------------------

    def mean(self, by: Sequence[str] = ("task", "view"), **where: str | tuple[str, ...]) -> Draws:
        """The mean of the cells that meet the conditions; cells alike in `by` count as one."""
        groups = self._groups(by, where)
        return np.asarray(np.mean(list(groups.values()), axis=0))

    def gap(self, ours: Where, theirs: Where, by: Sequence[str] = ("task", "view")) -> Draws:
        """The mean difference of two kinds of cells over what both have in common."""
        first, second = self._groups(by, ours), self._groups(by, theirs)
        common = [key for key in first if key in second]
        if not common:
            raise NotMeasuredError("no task has both sides")
        return np.asarray(np.mean([first[key] - second[key] for key in common], axis=0))

    def lead(
        self, ours: Where, others: Iterable[Where], by: Sequence[str] = ("task", "view")
    ) -> Draws:
        """How far ahead of the best of the others: above zero is ahead of every one."""
        return np.asarray(np.min([self.gap(ours, other, by) for other in others], axis=0))

    def spread(self, groups: Iterable[Where], by: Sequence[str] = ("task", "view")) -> Draws:
        """The distance between the best and the worst of several kinds of cells."""
        means = np.stack([self.mean(by, **group) for group in groups])
        return np.asarray(np.ptp(means, axis=0))

    def raw_mean(self, **where: str | tuple[str, ...]) -> Draws:
        """The mean return of the cells that meet the conditions, not scaled."""
        cells = self._found(where)
        return np.asarray(np.mean([self._draws(cell, lambda _, s: s) for cell in cells], axis=0))

    def ratio(self, number: str, ours: Where, theirs: Where) -> Array:
        """How many times as much of a final number (time, parameters), for each common task."""
        first, second = (
            {(c.task, c.view): c.number(number) for c in self._found(side)}
            for side in (ours, theirs)
        )
        ratios = np.array([first[key] / second[key] for key in first if key in second])
        ratios = np.asarray(ratios[np.isfinite(ratios)], dtype=np.float64)
        if not ratios.size:
            raise NotMeasuredError(f"no run has {number}")
        return ratios

    def support(self, **where: str | tuple[str, ...]) -> tuple[int, float]:
        """The fewest seeds of a cell, and the least share of the paper's steps that any run had."""
        cells = self._found(where)
        shares = [share_of_budget(run) for cell in cells for run in cell.runs]
        return min(cell.scores.size for cell in cells), min(shares)

    def _found(self, where: Where) -> list[Cell]:
        cells = self.where(**where)
        if not cells:
            raise NotMeasuredError(f"no run with {_words(where)}")
        return cells

    def _groups(self, by: Sequence[str], where: Where) -> dict[tuple[str, ...], Draws]:
        groups: dict[tuple[str, ...], list[Draws]] = {}
        for cell in self._found(where):
            key = tuple(_trait(cell, name) for name in by)
            groups.setdefault(key, []).append(self._scaled_draws[cell.name])
        return {key: np.mean(draws, axis=0) for key, draws in groups.items()}

    @cached_property
    def _scaled_draws(self) -> dict[str, Draws]:
        return {cell.name: self._draws(cell, self.min_max) for cell in self.where()}

    def _draws(self, cell: Cell, scale: Callable[[Cell, Array], Array]) -> Draws:
        scores = scale(cell, cell.scores)
        counts = draw_counts(scores.size, generator_for("draws", cell.name), SAMPLES)
        return np.concatenate([[scores.mean()], counts @ scores / scores.size])


def sweeps_of(
    study: str, runs: Iterable[RunRecord], timed: Sequence[RunRecord] = ()
) -> list[Sweep]:
    """The sweeps of a study: one for each set of labels that its runs carry.

    Args:
        study: Its name.
        runs: Its runs.
        timed: Runs that lend their times to the cells.
    """
    variants: dict[str, list[RunRecord]] = {}
    for run in runs:
        variants.setdefault(run.variant, []).append(run)
    return [Sweep(study, name, tuple(cells_of(variants[name], timed))) for name in sorted(variants)]


def share_of_budget(run: RunRecord) -> float:
    """The steps of a run over those the paper gave it; 1 where the paper has no such run."""
    published = budget(run.env, run.view, run.algorithm)
    return 1.0 if published is None else run.steps / published


def _lone_scores(cell: Cell) -> Array:
    """The scores of runs without a learning curve."""
    scores = np.array([run.score for run in cell.runs])
    return np.asarray(scores[np.isnan(cell.curves).all(axis=-1)])


def _by_reference(cell: Cell, values: Array) -> Array | None:
    run = cell.runs[0]
    settings: dict[str, Any] = {**(run.config.get("env_settings") or {}), "view": cell.view}
    return by_reference(values, run.env, **settings)


def _trait(cell: Cell, name: str) -> str:
    if name == "env":
        return cell.runs[0].env
    if name == "mode":  # of Shoot, the only environment whose modes the paper compares
        settings = cell.runs[0].config.get("env_settings") or {}
        return str(settings.get("mode", "dependent"))
    return str(getattr(cell, name))


def _meets(cell: Cell, conditions: Where) -> bool:
    return all(
        _trait(cell, name) in ((value,) if isinstance(value, str) else value)
        for name, value in conditions.items()
    )


def _words(where: Where) -> str:
    parts = (value if isinstance(value, str) else " or ".join(value) for value in where.values())
    return ", ".join(parts) or "a score"
