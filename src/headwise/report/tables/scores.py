"""Tables of scores, comparisons and costs, of any study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from headwise.report.cells import Cell
from headwise.report.claims.ledger import ENOUGH_SEEDS
from headwise.report.figures.scores import COSTS
from headwise.report.names import ALGORITHMS, in_order, method_name, slug
from headwise.report.statistics import contrast, holm, iqm, paired, pairs_needed, welch
from headwise.report.statistics.aggregates import Array
from headwise.report.sweep import Method, Sweep, methods_of
from headwise.report.tables.table import Table, interval_text


def score_table(study: str, cells: Sequence[Cell]) -> Table:
    """A row for every cell: nothing that was run is missing here."""
    variants = any(cell.variant or cell.apart for cell in cells)
    rows, tags = [], []
    for cell in cells:
        scores = cell.scores
        row: list[Any] = [cell.task, cell.view, method_name(cell.algorithm, cell.factorization)]
        if variants:
            row.append(f"{cell.variant} {cell.apart}".strip())
        row += [cell.steps, scores.size, cell.unscored]
        row += [float(scores.mean()) if scores.size else None]
        if scores.size > 1:
            ends = map(float, contrast([scores]).interval())
            row += [*ends, float(scores.std(ddof=1))]
        else:
            row += [None] * 3
        row.append(float(iqm([scores])) if scores.size else None)
        row.append(sum(bool(run.result.get("diverged")) for run in cell.runs))
        rows.append(tuple(row))
        tags.append(_tags(cell))
    columns = ["environment", "view", "method", *(["variant"] if variants else [])]
    columns += ["steps", "seeds", "no score", "mean", "low", "high", "sd", "IQM", "diverged"]
    return Table(
        slug("scores", study),
        "Tables",
        f"Final returns of {study}",
        "The return of a run is the mean of its last 100 episodes. Low and high: Student's 95 % "
        "interval of the mean over seeds; a single seed has none. No score: runs that failed, or "
        "in which no episode ended. Diverged: runs whose parameters stopped being finite.",
        tuple(columns),
        tuple(rows),
        tuple(tags),
    )


def comparison_tables(sweep: Sweep) -> Iterator[Table]:
    """Every pair of methods within a family, over all tasks that both have."""
    rows, tags, tests, spreads = [], [], [], []
    for a in in_order((c.algorithm for c in sweep.where()), ALGORITHMS):
        for ours, theirs in combinations(methods_of(sweep.where(algorithm=a)), 2):
            pair = _by_seed(sweep, a, ours, theirs)
            if pair.first.size < 2:
                continue
            tests.append(paired(pair.first, pair.second))
            spreads.append(float((pair.first - pair.second).std(ddof=1)))
            names = [method_name(a, *method) for method in (ours, theirs)]
            rows.append((names, pair, float(welch(pair.first, pair.second).p)))
            tags.append({"algorithm": a})
    if not rows:
        return
    # The level at which the last of them would have to show: Holm's is nowhere stricter.
    level, entries = 0.05 / len(rows), []
    corrected = holm([float(test.p) for test in tests])
    for (names, pair, unpaired), test, spread, p in zip(
        rows, tests, spreads, corrected, strict=True
    ):
        difference = float(test.difference)
        wanted = pairs_needed(difference, spread, alpha=level)
        better, worse = names if difference > 0 else reversed(names)
        enough = pair.first.size >= ENOUGH_SEEDS
        settled = enough and p < 0.05 and not pair.incomplete
        word = "No telling yet" if enough else "Too few seeds"
        if settled:
            word = f"{better} is better than {worse}"
        elif pair.incomplete:
            word, wanted = f"Incomplete: {pair.incomplete}", None
        elif wanted is not None:
            wanted = max(wanted, ENOUGH_SEEDS)
        entries.append(
            (
                *names,
                pair.num_tasks,
                pair.first.size,
                pair.steps,
                difference,
                interval_text(float(test.low), float(test.high)),
                float(test.d),
                float(test.p),
                float(p),
                unpaired,
                None if settled or pair.incomplete else "> 100,000" if wanted is None else wanted,
                f"{word}, at unequal steps." if pair.steps != "equal" else f"{word}.",
            )
        )
    yield Table(
        slug("comparisons", sweep.study, sweep.variant),
        "Scores",
        f"Factorizations against each other ({sweep.title})",
        "Each seed's mean score over the tasks that both have, paired by seed. Score: "
        f"{sweep.scale}. p (Holm) is corrected for all {len(rows)} comparisons of the table and "
        f"decides, with {ENOUGH_SEEDS} seeds at least. Seeds to settle, where it does not: with "
        "how many the same paired test at the level of all comparisons would show a difference as "
        "large as this, with power 0.8.",
        (
            "method", "against", "tasks", "seeds", "steps", "difference", "95 % interval",
            "Cohen's d", "p (paired)", "p (Holm)", "p (Welch)", "seeds to settle", "in a word",
        ),
        tuple(entries),
        tuple(tags),
    )  # fmt: skip


def cost_table(sweep: Sweep) -> Iterator[Table]:
    """What every method costs on every task."""
    rows, tags = [], []
    for cell in sweep.cells:
        costs = [cell.number(name) for name in COSTS]
        if np.isfinite(costs).any():
            rows.append(
                (cell.task, cell.view,
                 method_name(cell.algorithm, cell.factorization, cell.apart), *costs,
                 cell.number("wall_s"))
            )  # fmt: skip
            tags.append(_tags(cell))
    if rows:
        columns = ("environment", "view", "method", *COSTS.values(), "seconds per run")
        yield Table(
            slug("compute", sweep.study, sweep.variant),
            "Compute",
            f"What every cell costs ({sweep.title})",
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


class _Pair(NamedTuple):
    """Two methods on the tasks and seeds that both have."""

    first: Array
    """The mean score over tasks of every seed, (seeds,)."""
    second: Array
    num_tasks: int
    steps: str
    """Whether runs were equally long."""
    incomplete: str
    """Which runs have no score; the others are no fair sample."""


def _by_seed(sweep: Sweep, algorithm: str, ours: Method, theirs: Method) -> _Pair:
    sides = [
        {(c.task, c.view): c for c in sweep.every(algorithm=algorithm, factorization=f, apart=a)}
        for f, a in (ours, theirs)
    ]
    both = [key for key in sides[0] if key in sides[1]]
    incomplete = [side[key].incomplete for key in both for side in sides]
    tasks = [key for key in both if all(side[key].scores.size for side in sides)]
    cells = [side[key] for key in tasks for side in sides]
    seeds = sorted(set.intersection(*(set(c.seeds.tolist()) for c in cells))) if cells else []
    first, second = (
        np.array(
            [
                np.mean([sweep.scaled(side[k], side[k].scores[side[k].seeds == s]) for k in tasks])
                for s in seeds
            ]
        )
        for side in sides
    )
    steps = [(sides[0][key].steps, sides[1][key].steps) for key in tasks]
    unequal = next((f"{one:,} and {other:,}" for one, other in steps if one != other), "equal")
    return _Pair(first, second, len(tasks), unequal, next(filter(None, incomplete), ""))
