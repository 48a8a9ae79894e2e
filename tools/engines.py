"""Runs of the paper's sweep by both engines, cell by cell.

    python tools/engines.py     # writes results/paper_engines.csv, prints what it comes to

Cells of `results/paper_engine2.parquet` are set against those of `results/paper.parquet`, which
have the same configurations and seeds. Another engine has other digits from the same seed, so runs
are not paired: differences are Welch's. Runs beside the plan are further seeds, in a line of their
own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from headwise.csv_cells import csv_text
from headwise.report.runs import read_store
from headwise.report.statistics import welch
from headwise.study.records import Record

ROOT = Path(__file__).parents[1]
FIRST, SECOND = (ROOT / "results" / f"{name}.parquet" for name in ("paper", "paper_engine2"))
TARGET = ROOT / "results" / "paper_engines.csv"
CELL = ("environment", "view", "algorithm", "factorization")
COLUMNS = (
    *CELL, "seeds", "engine_1_runs", "engine_2_runs", "engine_1", "engine_2", "difference",
    "standard_errors", "p",
)  # fmt: skip

Scores = dict[tuple[str, ...], list[float]]


def scores(runs: Iterable[Record]) -> Scores:
    """The final returns of every cell."""
    found: Scores = {}
    for run in runs:
        key = (run.task, run.view, run.algorithm, run.factorization)
        found.setdefault(key, []).append(run.score)
    return found


def rows(first: Path = FIRST, second: Path = SECOND) -> list[tuple[object, ...]]:
    """A row for each cell that both have, and one for the further seeds of one."""
    ours = read_store(first).runs
    planned = read_store(second).runs
    ids = {run.id for run in planned}
    further = [run for run in read_store(second, all_runs=True).runs if run.id not in ids]
    old = scores(ours)
    return [
        (*cell, words, *_compared(old[cell], new[cell]))
        for words, new in (("the same", scores(planned)), ("further ones", scores(further)))
        for cell in sorted(new)
    ]


def _compared(old: Sequence[float], new: Sequence[float]) -> tuple[object, ...]:
    test = welch(new, old)
    numbers = (np.mean(old), np.mean(new), test.difference, test.t, test.p)
    return (len(old), len(new), *(float(f"{float(number):.4g}") for number in numbers))


def main() -> None:
    """Writes the file."""
    found = rows()
    TARGET.write_text(csv_text([[*COLUMNS], *map(list, found)]))
    apart = [row for row in found if abs(float(str(row[-2]))) > 2.0]
    print(f"{len(found)} comparisons, {len(apart)} of them more than two standard errors apart:")
    for row in apart:
        print(*row)


if __name__ == "__main__":
    main()
