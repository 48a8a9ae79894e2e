"""How the variance of heads and the squares of their weights go together, run by run.

    headwise study run decoupler_factorial
    python tools/variance_law.py runs/decoupler_factorial   # writes results/variance_law.csv

Both numbers are means over the last third of the updates, inactive head over active head: of the
variance of their advantages, and of the squares of their weights.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from headwise.csv_cells import csv_text
from headwise.report.runs import read_store
from headwise.studies.paper.decoupler_runs import last_third
from headwise.study.records import Record

TARGET = Path(__file__).parents[1] / "results" / "variance_law.csv"
TRAITS = ("preset", "algorithm", "factorization", "estimator", "seed")
METRICS = ("variance_ratio", "weight_ratio")


def as_csv(runs: Iterable[Record]) -> str:
    """A row for each run with weights that are not all alike."""
    weighted = [run for run in runs if run.estimator in ("grad", "range")]
    rows: list[list[object]] = [[*TRAITS, *METRICS, "engine", "run"]]
    for run in sorted(weighted, key=lambda run: [getattr(run, name) for name in TRAITS]):
        numbers = [round(last_third(run, f"credit/{name}"), 10) for name in METRICS]
        traits = [getattr(run, name) for name in TRAITS]
        rows.append([*traits, *numbers, run.engine, run.id])
    return csv_text(rows)


def main(folders: Sequence[str]) -> None:
    """Writes the file."""
    (folder,) = folders
    TARGET.write_text(as_csv(read_store(folder)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
