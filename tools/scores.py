"""What an archived sweep says, for people: a CSV with a row for each run, and a table of scores.

    python tools/scores.py results/paper.parquet     # writes results/paper.csv, prints the table

Scores are final returns on a scale where random play is 0 and the best policy known is 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from headwise.csv_cells import csv_text
from headwise.envs.reference import normalize
from headwise.report.names import ALGORITHMS, FACTORIZATIONS, VIEWS, algorithm_name, in_order
from headwise.report.runs import read_store
from headwise.study.records import Record

COLUMNS = ("task", "view", "algorithm", "factorization", "seed", "steps")


def score(run: Record) -> float:
    """A run's final return on the common scale."""
    settings = run.config["env_settings"]
    return float(normalize(run.score, run.env, **settings, view=run.view))


def as_csv(runs: Iterable[Record]) -> str:
    """A row for each run, by name."""
    columns = ["environment", *COLUMNS[1:], "final_return", "score", "num_parameters", "run"]
    rows: list[list[object]] = [[*columns]]
    for run in sorted(runs, key=lambda run: [getattr(run, name) for name in COLUMNS]):
        what = [getattr(run, name) for name in COLUMNS]
        numbers = round(run.score, 4), round(score(run), 4), int(run.number("num_parameters"))
        rows.append([*what, *numbers, run.id])
    return csv_text(rows)


def as_table(runs: Iterable[Record]) -> str:
    """Mean scores in Markdown: a row for each environment, algorithm and view."""
    cells: dict[tuple[str, str, str, str], list[float]] = {}
    for run in runs:
        key = (run.task, run.algorithm, run.view, run.factorization)
        cells.setdefault(key, []).append(score(run))
    lines = [
        f"| environment | view | algorithm | {' | '.join(FACTORIZATIONS)} |",
        "| --- " * (3 + len(FACTORIZATIONS)) + "|",
    ]
    for task in sorted({key[0] for key in cells}):
        for algorithm in in_order((key[1] for key in cells if key[0] == task), ALGORITHMS):
            views = (key[2] for key in cells if key[:2] == (task, algorithm))
            for view in in_order(views, VIEWS):
                found = [cells.get((task, algorithm, view, f)) for f in FACTORIZATIONS]
                scores = [f"{np.mean(values):.2f}" if values else "" for values in found]
                what = (task, view, algorithm_name(algorithm))
                lines.append(f"| {' | '.join((*what, *scores))} |")
    return "\n".join(lines)


def main(paths: Sequence[str]) -> None:
    """Writes a CSV beside each archive and prints its table."""
    if not paths:
        sys.exit(__doc__)
    for path in map(Path, paths):
        runs = read_store(path).runs
        if len(engines := sorted({run.engine for run in runs})) > 1:
            sys.exit(f"{path} has runs of engines {engines}, which are not one sample.")
        path.with_suffix(".csv").write_text(as_csv(runs))
        print(as_table(runs))


if __name__ == "__main__":
    main(sys.argv[1:])
