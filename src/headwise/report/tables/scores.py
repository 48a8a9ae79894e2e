"""Tables of scores, comparisons and costs, of any study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from headwise.report.cells import Cell
from headwise.report.figures.scores import COSTS
from headwise.report.names import (
    ALGORITHMS,
    FACTORIZATIONS,
    generator_for,
    in_order,
    method_name,
    slug,
)
from headwise.report.statistics import estimate, holm, iqm, paired, seeds_needed, welch
from headwise.report.statistics.aggregates import Array
from headwise.report.sweep import Sweep
from headwise.report.tables.table import Table, interval_text


def score_table(study: str, cells: Sequence[Cell]) -> Table:
    """A row for every cell: nothing that was run is missing here."""
    variants = any(cell.variant for cell in cells)
    rows, tags = [], []
    for cell in cells:
        scores = cell.scores
        row: list[Any] = [cell.task, cell.view, method_name(cell.algorithm, cell.factorization)]
        if variants:
            row.append(cell.variant)
        row += [cell.steps, scores.size]
        if scores.size:
            found = estimate(scores, iqm, generator_for("score", study, cell.name), samples=1000)
            spread = float(scores.std(ddof=1)) if scores.size > 1 else None
            row += [float(scores.mean()), spread, *map(float, found)]
        else:
            row += [None] * 5
        row.append(sum(bool(run.result.get("diverged")) for run in cell.runs))
        rows.append(tuple(row))
        tags.append(_tags(cell))
    columns = ["environment", "view", "method", *(["variant"] if variants else [])]
    columns += ["steps", "seeds", "mean", "sd", "IQM", "low", "high", "diverged"]
    return Table(
        slug("scores", study),
        "Tables",
        f"Final returns of {study}",
        "The return of a run is the mean of its last 100 episodes. Low and high: 95 % bootstrap "
        "interval of the IQM over seeds. Diverged: runs whose parameters stopped being finite.",
        tuple(columns),
        tuple(rows),
        tuple(tags),
    )


def comparison_tables(sweep: Sweep) -> Iterator[Table]:
    """Every pair of factorizations within a family, over all tasks that both have."""
    rows: list[list[Any]] = []
    tags, p_values = [], []
    for a in in_order((c.algorithm for c in sweep.where()), ALGORITHMS):
        kinds = in_order((c.factorization for c in sweep.where(algorithm=a)), FACTORIZATIONS)
        for ours, theirs in combinations(kinds, 2):
            first, second, num_tasks = _by_seed(sweep, a, ours, theirs)
            if len(first) < 2:
                continue
            test, unpaired = paired(first, second), welch(first, second)
            wanted = seeds_needed(
                float(test.difference), float(first.std(ddof=1)), float(second.std(ddof=1))
            )
            rows.append(
                [
                    method_name(a, ours),
                    method_name(a, theirs),
                    num_tasks,
                    len(first),
                    float(test.difference),
                    interval_text(float(test.low), float(test.high)),
                    float(test.d),
                    float(test.p),
                    float(unpaired.p),
                    "> 100,000" if wanted is None else wanted,
                ]
            )
            p_values.append(float(test.p))
            tags.append({"algorithm": a})
    for row, p in zip(rows, holm(p_values), strict=True):
        row.insert(8, float(p))
        better, worse = (row[0], row[1]) if row[4] > 0 else (row[1], row[0])
        row.append(f"{better} is better than {worse}." if p < 0.05 else "No telling yet.")
    if rows:
        yield Table(
            slug("comparisons", sweep.study, sweep.variant),
            "Scores",
            "Factorizations against each other",
            "Each seed's mean score over the tasks that both have, paired by seed. Score: "
            f"{sweep.scale}. p (Holm) is corrected for all {len(rows)} comparisons of the table; "
            "seeds: how many a side would settle a difference as large as this with power 0.8.",
            (
                "method", "against", "tasks", "seeds", "difference", "95 % interval", "Cohen's d",
                "p (paired)", "p (Holm)", "p (Welch)", "seeds to settle", "in a word",
            ),
            tuple(map(tuple, rows)),
            tuple(tags),
        )  # fmt: skip


def cost_table(sweep: Sweep) -> Iterator[Table]:
    """What every method costs on every task."""
    rows, tags = [], []
    for cell in sweep.cells:
        costs = [cell.number(name) for name in COSTS]
        if np.isfinite(costs).any():
            rows.append(
                (cell.task, cell.view, method_name(cell.algorithm, cell.factorization), *costs,
                 cell.number("wall_s"))
            )  # fmt: skip
            tags.append(_tags(cell))
    if rows:
        columns = ("environment", "view", "method", *COSTS.values(), "seconds per run")
        yield Table(
            slug("compute", sweep.study, sweep.variant),
            "Compute",
            "What every cell costs",
            "Medians over seeds; times are a member's share of its population.",
            columns,
            tuple(rows),
            tuple(tags),
        )


def _tags(cell: Cell) -> dict[str, str]:
    return {
        "environment": cell.task,
        "view": cell.view,
        "algorithm": cell.algorithm,
        "factorization": cell.factorization,
    }


def _by_seed(sweep: Sweep, algorithm: str, ours: str, theirs: str) -> tuple[Array, Array, int]:
    """The mean score over tasks of every seed that both have on all of them."""
    sides = [
        {(c.task, c.view): c for c in sweep.where(algorithm=algorithm, factorization=f)}
        for f in (ours, theirs)
    ]
    tasks = [key for key in sides[0] if key in sides[1]]
    cells = [side[key] for key in tasks for side in sides]
    seeds = sorted(set.intersection(*(set(c.seeds.tolist()) for c in cells))) if cells else []
    means = [
        np.array(
            [
                np.mean([sweep.scaled(side[k], side[k].scores[side[k].seeds == s]) for k in tasks])
                for s in seeds
            ]
        )
        for side in sides
    ]
    return means[0], means[1], len(tasks)
