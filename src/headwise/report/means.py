"""Learning curves for cells whose runs have none stored: other runs', or the mean alone.

Other runs are of the same configurations, by another engine, say, and come from another archive.
Means are of a file such as paper_mean_curves.csv. Both are for figures: no score and no claim
counts them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy import special

from headwise.averages import CONFIDENCE
from headwise.errors import ConfigError
from headwise.report.cells import Band, Cell, Lent, configuration
from headwise.report.statistics.aggregates import Array
from headwise.study.measures import NUM_POINTS
from headwise.study.records import Record

Place: TypeAlias = tuple[str, str, str, str]
"""Environment, view, algorithm and factorization."""
_SIDE = (1.0 + CONFIDENCE) / 2.0
_PLACE = ("environment", "view", "algorithm", "factorization")


@dataclass(frozen=True)
class MeanCurve:
    """The mean of some runs over equal shares of their steps, with its interval."""

    steps: int
    band: Band


Means: TypeAlias = Mapping[Place, MeanCurve]


def read_means(path: str | Path) -> Means:
    """The curves of a file, by cell.

    Raises:
        ConfigError: There is no such file, or it is of another kind.
    """
    found: dict[tuple[Place, int, int], dict[str, Array]] = {}
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                environment, view, algorithm, factorization = (row[name] for name in _PLACE)
                place = (environment, view, algorithm, factorization)
                values = np.array([float(row[str(i)]) for i in range(1, NUM_POINTS + 1)])
                key = (place, int(row["runs"]), int(row["steps"]))
                found.setdefault(key, {})[row["of"]] = values
        return {
            place: MeanCurve(steps, _band(rows["mean"], rows["low"], rows["high"], runs))
            for (place, runs, steps), rows in found.items()
        }
    except (OSError, UnicodeDecodeError, KeyError, TypeError, ValueError, csv.Error) as error:
        raise ConfigError(
            "cannot read mean curves",
            got=f"{path}: {type(error).__name__}: {error}",
            allowed=f"a CSV with {', '.join(_PLACE)}, runs, steps, of (mean, low, high) and a "
            f"column for each of {NUM_POINTS} shares",
            fix="Give results/paper_mean_curves.csv, or leave it out.",
        ) from error


def as_curves(found: Band) -> Array:
    """Curves with the mean and the interval of a band, as many as it had runs: no run's own.

    Half of them lie above the mean and half below, by as much as makes the band theirs.
    """
    place = np.arange(found.num_runs) - (found.num_runs - 1) / 2
    place *= np.sqrt(found.num_runs / place.var(ddof=1))
    return np.asarray(found.mean + place[:, None] * found.error)


def _band(mean: Array, low: Array, high: Array, runs: int) -> Band:
    """A band of two runs or more, with the error that its interval is of."""
    return Band(mean, low, high, (high - low) / 2 / special.stdtrit(runs - 1, _SIDE), runs)


@dataclass(frozen=True)
class Lender:
    """What figures have for cells without curves: first other runs, then means."""

    means: Means = field(default_factory=dict)
    runs: Mapping[str, Sequence[Record]] = field(default_factory=dict)
    """By what they have in common."""

    @classmethod
    def of(cls, means: Means | None = None, runs: Iterable[Record] = ()) -> Lender:
        """One of a file of means and of runs that have curves."""
        found: dict[str, list[Record]] = {}
        for run in runs:
            found.setdefault(configuration(run), []).append(run)
        return cls(means or {}, found)

    def lend(self, cell: Cell) -> Cell:
        """The cell, with curves if it has none and there are some, of as many steps."""
        if cell.is_evaluated or cell.apart or np.isfinite(cell.curves).any():
            return cell
        runs = self.runs.get(configuration(cell.runs[0]), ())
        curves = [curve for run in runs if np.isfinite(curve := run.curve()).any()]
        if curves:
            engines = sorted({run.engine for run in runs})
            words = "engine " + " and ".join(map(str, engines))
            return replace(cell, lent=Lent(np.stack(curves), words))
        found = self.means.get((cell.task, cell.view, cell.algorithm, cell.factorization))
        if found is None or found.steps != cell.steps:
            return cell
        words = f"mean of {found.band.num_runs}"
        return replace(cell, lent=Lent(as_curves(found.band), words, is_mean=True))
