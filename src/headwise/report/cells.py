"""Cells: the runs that differ in nothing but the seed, with their scores and learning curves."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.report.names import ALGORITHMS, FACTORIZATIONS, VIEWS
from headwise.report.statistics.aggregates import Array
from headwise.report.statistics.contrasts import contrast
from headwise.study.measures import NUM_POINTS
from headwise.study.records import Record

LENT = ("update_ms", "act_ms", "act_flops")
"""What is measured on a CPU alone and does not depend on how long a run is."""
_NOT_SHARED = ("seed", "labels", "id")
"""What the runs of a cell may differ in."""
_NESTED = ("env_settings", "settings", "factorization_settings")
"""Parts of a configuration that are settings themselves; a name may be in several of them."""


@dataclass(frozen=True)
class Lent:
    """Learning curves in the place of those that a cell's runs do not have; for figures alone."""

    curves: Array
    """(runs, points), over equal shares of the steps."""
    words: str
    """What they are, beside the name of a line."""
    is_mean: bool = False
    """Whether the mean and its band alone are those of runs."""


@dataclass(frozen=True)
class Cell:
    """Runs of one configuration, one for each seed."""

    task: str
    view: str
    algorithm: str
    factorization: str
    variant: str
    """What the study's labels say of it."""
    runs: tuple[Record, ...]
    apart: str = ""
    """The settings that tell it from other cells that would go by the same name."""
    timed: tuple[Record, ...] = ()
    """Runs elsewhere that differ in seed and steps alone, whose times count instead of its own:
    times are compared between cells, so all should be of one machine and one size of population.
    They are of the engine that trained the cell."""
    failed: tuple[Record, ...] = ()
    """Runs of the same configuration that raised."""
    lent: Lent | None = None
    until: int | None = None
    """Steps after which nothing counts; with it, scores are what curves were at by then."""

    @property
    def steps(self) -> int:
        """Environment steps of each run, as far as they count."""
        return self.until or min(run.steps for run in self.runs)

    @property
    def name(self) -> str:
        """All that sets it apart."""
        parts = (self.task, self.view, self.algorithm, self.factorization, self.variant, self.apart)
        return "/".join(part for part in parts if part)

    @cached_property
    def scores(self) -> Array:
        """The score of every run that has one, by seed: of evaluation, or else of training."""
        return np.asarray(self._scores[np.isfinite(self._scores)])

    @cached_property
    def seeds(self) -> NDArray[np.int64]:
        """The seeds of the scores."""
        seeds = np.array([run.seed for run in self.runs], dtype=np.int64)
        return np.asarray(seeds[np.isfinite(self._scores)])

    @cached_property
    def _scores(self) -> Array:
        if self.until is None:
            return np.array([run.score for run in self.runs], dtype=np.float64)
        ends = grid(min(run.steps for run in self.runs))
        return np.array([np.interp(self.until, ends, curve) for curve in self.curves])

    @property
    def unscored(self) -> int:
        """How many runs have no score: they failed, or no episode of theirs ended."""
        return len(self.failed) + len(self.runs) - self.scores.size

    @property
    def incomplete(self) -> str:
        """Why its scores say nothing of the configuration; empty where all runs have one.

        Runs without a score are not missing by chance: those that are left may be the lucky ones.
        """
        if not self.unscored:
            return ""
        total, silent = len(self.runs) + len(self.failed), self.unscored - len(self.failed)
        words = [f"{len(self.failed)} failed"] if self.failed else []
        words += [f"{silent} ended no episode"] if silent else []
        return f"of {total} runs of {self.name} {' and '.join(words)}"

    @cached_property
    def curves(self) -> Array:
        """The learning curve of every run, (runs, points), over equal shares of the steps.

        It is that of greedy evaluations where there were such.
        """
        if self.lent is not None:
            return self.lent.curves
        if self.is_evaluated:
            return np.stack([run.evaluation_curve() for run in self.runs])
        return self.training_curves

    @property
    def training_curves(self) -> Array:
        """The returns in training of every run, (runs, points), over equal shares of the steps."""
        return np.stack([run.curve() for run in self.runs])

    @property
    def points(self) -> Array:
        """What the range of a task is taken from: curves, and scores of runs without one."""
        if self.lent is not None:
            curves = self.lent.curves
            return np.append(curves.mean(axis=0) if self.lent.is_mean else curves, self.scores)
        scores = np.array([run.score for run in self.runs])
        return np.append(self.curves, scores[np.isnan(self.curves).all(axis=-1)])

    @property
    def is_evaluated(self) -> bool:
        """Whether its runs were evaluated greedily: all of them were, or none."""
        return self.runs[0].is_evaluated

    def number(self, name: str) -> float:
        """The median over runs of a final number, NaN if none has it."""
        for runs in (self.timed if name in LENT else (), self.runs):
            values = np.array([run.number(name) for run in runs])
            values = values[np.isfinite(values)]
            if values.size:
                return float(np.median(values))
        return float("nan")


@dataclass(frozen=True)
class Lost:
    """A configuration of which every run failed: there is no cell of it, only a place for one."""

    runs: tuple[Record, ...]

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Task, view, algorithm and factorization."""
        first = self.runs[0]
        return (first.task, first.view, first.algorithm, first.factorization)

    @property
    def incomplete(self) -> str:
        """Why nothing is known of it."""
        return f"all {len(self.runs)} runs of {'/'.join(self.place)} failed"


def lost_of(runs: Iterable[Record], failed: Iterable[Record]) -> list[Lost]:
    """The configurations of failed runs that none of the other runs has, in order of names."""
    known = {configuration(run) for run in runs}
    groups: dict[str, list[Record]] = {}
    for run in failed:
        groups.setdefault(configuration(run), []).append(run)
    lost = [Lost(tuple(group)) for name, group in groups.items() if name not in known]
    return sorted(lost, key=lambda one: (one.place, one.runs[0].id))


def cells_of(
    runs: Iterable[Record],
    timed: Iterable[Record] = (),
    failed: Iterable[Record] = (),
) -> list[Cell]:
    """Runs gathered into cells, in the order of names and not of the folder.

    Only runs whose whole configurations agree are pooled, whatever their labels say, and only runs
    of one kind of device, one precision of products and one engine; cells that would go by the same
    name are told apart by the settings in which they differ.

    Args:
        runs: The runs.
        timed: Runs that lend their times to the cells.
        failed: Runs that raised; their cells know of them.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for run in runs:
        groups.setdefault((configuration(run), run.made), []).append(run)
    lent: dict[tuple[str, int], list[Record]] = {}
    for run in timed:
        lent.setdefault((configuration(run, but="total_timesteps"), run.engine), []).append(run)
    lost: dict[str, list[Record]] = {}
    for run in failed:
        lost.setdefault(configuration(run), []).append(run)
    cells = [
        _cell(
            group,
            lent.get((configuration(group[0], but="total_timesteps"), group[0].engine), ()),
            lost.get(configuration(group[0]), ()),
        )
        for group in groups.values()
    ]
    for name in sorted({cell.name for cell in cells}):
        alike = [place for place, cell in enumerate(cells) if cell.name == name]
        if len(alike) > 1:
            for place, text in zip(alike, _differences([cells[i] for i in alike]), strict=True):
                cells[place] = replace(cells[place], apart=text)
    # A lookup of cells by name would otherwise lose one silently.
    assert len({cell.name for cell in cells}) == len(cells)

    def rank(cell: Cell) -> tuple[str, int, int, int, str, str]:
        return (
            cell.task,
            _place(cell.view, VIEWS),
            _place(cell.algorithm, ALGORITHMS),
            _place(cell.factorization, FACTORIZATIONS),
            cell.variant,
            cell.apart,
        )

    return sorted(cells, key=rank)


def configuration(run: Record, but: str = "") -> str:
    """What runs of one cell have in common, as text; `but` names what they need not."""
    kept = {key: value for key, value in run.config.items() if key not in (*_NOT_SHARED, but)}
    return json.dumps(kept, sort_keys=True)


def _cell(runs: Sequence[Record], timed: Sequence[Record], failed: Sequence[Record]) -> Cell:
    first = runs[0]
    return Cell(
        first.task,
        first.view,
        first.algorithm,
        first.factorization,
        first.variant,
        tuple(sorted(runs, key=lambda run: run.seed)),
        timed=tuple(timed),
        failed=tuple(failed),
    )


def _differences(cells: Sequence[Cell]) -> list[str]:
    """For each cell, the settings in which they are not all alike; no two get the same text."""
    settings = [_settings(cell.runs[0]) for cell in cells]
    exact = [{k: json.dumps(v, sort_keys=True) for k, v in found.items()} for found in settings]
    keys = {key for found in settings for key in found}
    times = Counter(name for _, name in keys)
    names = {(part, n): f"{part}.{n}" if part and times[n] > 1 else n for part, n in keys}
    differing = [key for key in keys if len({found.get(key) for found in exact}) > 1]
    differing.sort(key=lambda key: names[key])

    def texts(values: Sequence[Mapping[tuple[str, str], Any]]) -> list[str]:
        # A setting that a run does not have was added later: there it is as before, and needs no
        # name.
        told = ([f"{names[k]}={found[k]}" for k in differing if k in found] for found in values)
        return [" ".join(parts) for parts in told]

    plain = texts(settings)
    return plain if len(set(plain)) == len(plain) else texts(exact)  # as of "1" and 1


def _settings(run: Record) -> dict[tuple[str, str], Any]:
    """All that a cell's runs share, by the part of the configuration it is in and its name."""
    found: dict[tuple[str, str], Any] = {("", "made"): run.made} if run.made else {}
    for name, value in run.config.items():
        if name in _NESTED:
            found |= {(name, inner): setting for inner, setting in (value or {}).items()}
        elif name not in _NOT_SHARED:
            found["", name] = value
    return found


def unlike(cells: Iterable[Cell]) -> bool:
    """Whether some are known to be of other kinds of device, precisions of products or engines."""
    first = [cell.runs[0] for cell in cells]
    known: tuple[set[object], ...] = (
        {run.device for run in first},
        {run.matmul_precision for run in first},
        {run.engine for run in first},
    )
    return any(len(kinds - {""}) > 1 for kinds in known)


def read_curves(cells: Sequence[Cell]) -> None:
    """Reads the curves of many cells at once: it is the slow part, and mostly waiting for files."""
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda cell: cell.curves, cells):
            pass


def grid(steps: float = 1.0) -> Array:
    """Where the points of a curve are: the end of each share."""
    return np.linspace(steps / NUM_POINTS, steps, NUM_POINTS)


@dataclass(frozen=True)
class Band:
    """A mean curve and a 95 % interval around it, each (points,); NaN where there is none."""

    mean: Array
    low: Array
    high: Array
    error: Array
    """The standard error of the mean; NaN where the interval is not Student's."""
    num_runs: int


def band(strata: Sequence[Array]) -> Band:
    """The mean over tasks of the mean curve over runs, with Student's interval at each point.

    Args:
        strata: The curves of each task, (runs, points).
    """
    strata = [part[np.isfinite(part).all(axis=-1)] for part in strata]
    strata = [part for part in strata if len(part)]
    if not strata:
        nothing = np.full(NUM_POINTS, np.nan)
        return Band(nothing, nothing, nothing, nothing, 0)
    found = contrast([part.T for part in strata])
    low, high, error = (
        np.where(np.isfinite(end), end, np.nan) for end in (*found.interval(), found.error)
    )
    return Band(found.value, low, high, error, sum(map(len, strata)))


def _place(name: str, known: Iterable[str]) -> int:
    order = list(known)
    return order.index(name) if name in order else len(order)
