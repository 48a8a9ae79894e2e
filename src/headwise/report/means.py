"""Mean learning curves whose runs are not stored, from a file such as paper_mean_curves.csv."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from headwise.errors import ConfigError
from headwise.report.cells import Band, Cell
from headwise.report.statistics.aggregates import Array
from headwise.study.measures import NUM_POINTS

Place: TypeAlias = tuple[str, str, str, str]
"""Environment, view, algorithm and factorization."""
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
            place: MeanCurve(steps, Band(rows["mean"], rows["low"], rows["high"], runs))
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


def mean_of(cell: Cell, means: Means) -> MeanCurve | None:
    """The mean curve of a cell that has no curve of its own, where its runs had as many steps."""
    if np.isfinite(cell.curves).any() or cell.apart:
        return None
    found = means.get((cell.task, cell.view, cell.algorithm, cell.factorization))
    return found if found is not None and found.steps == cell.steps else None
