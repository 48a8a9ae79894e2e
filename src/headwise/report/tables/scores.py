"""Tables of scores, comparisons and costs, of any study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from headwise.report.cells import Cell, Lost, unlike
from headwise.report.claims.ledger import ENOUGH_SEEDS
from headwise.report.figures.scores import COSTS
from headwise.report.names import ALGORITHMS, in_order, method_name, slug
from headwise.report.statistics import (
    Contrast,
    by_seed,
    contrast,
    holm,
    iqm,
    sample,
    seeds_to_settle,
)
from headwise.report.sweep import Method, Sweep, methods_of
from headwise.report.tables.table import Table, interval_text


def score_table(study: str, cells: Sequence[Cell], lost: Sequence[Lost] = ()) -> Table:
    """A row for every cell: nothing that was run is missing here."""
    variants = any(cell.variant or cell.apart for cell in cells)
    variants |= any(one.runs[0].variant for one in lost)
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
    for one in lost:
        task, view, *method = one.place
        name = [one.runs[0].variant] if variants else []
        count = [one.runs[0].steps, 0, len(one.runs)]
        rows.append((task, view, method_name(*method), *name, *count, *[None] * 5, 0))
        tags.append(dict(zip(_PLACE, one.place, strict=True)))
    columns = ["environment", "view", "method", *(["variant"] if variants else [])]
    columns += ["steps", "seeds", "no score", "mean", "low", "high", "sd", "IQM", "diverged"]
    return Table(
        slug("scores", study),
        "Tables",
        f"Final returns of {study}",
        f"The return of a run is {_what_is_ranked(cells)}. Low and high: Student's 95 % "
        "interval of the mean over seeds; a single seed has none. No score: runs that failed, or "
        "in which no episode ended. Diverged: runs whose parameters stopped being finite.",
        tuple(columns),
        tuple(rows),
        tuple(tags),
    )


def _what_is_ranked(cells: Sequence[Cell]) -> str:
    """What the return of a run is, in words."""
    training = "the mean of its last 100 episodes"
    evaluated = "the mean of greedy episodes at its end"
    kinds = {cell.is_evaluated for cell in cells}
    if kinds == {True}:
        return evaluated
    return f"{evaluated}; of one that was not evaluated, {training}" if True in kinds else training


def comparison_tables(sweep: Sweep) -> Iterator[Table]:
    """Every pair of methods within a family, over all tasks that both have."""
    found = []
    for a in in_order((c.algorithm for c in sweep.where()), ALGORITHMS):
        for ours, theirs in combinations(methods_of(sweep.where(algorithm=a)), 2):
            pair = _pair(sweep, a, ours, theirs)
            if pair is not None:
                names = [method_name(a, *method) for method in (ours, theirs)]
                found.append((a, names, pair))
    if not found:
        return
    # The level at which the last of them would have to show: Holm's is nowhere stricter.
    level, rows = 0.05 / len(found), []
    corrected = holm([float(pair.found.p) for *_, pair in found])
    for (_, names, pair), p in zip(found, corrected, strict=True):
        difference = float(pair.found.value)
        better, worse = names if difference > 0 else reversed(names)
        wanted = seeds_to_settle(pair.found, pair.seeds, alpha=level)
        settle: int | str | None = "> 100,000" if wanted is None else max(wanted, ENOUGH_SEEDS)
        word = "Inconclusive" if pair.seeds >= ENOUGH_SEEDS else "Too few seeds"
        if pair.incomplete:
            settle, word = None, f"Incomplete: {pair.incomplete}"
        elif pair.seeds >= ENOUGH_SEEDS and p < 0.05:
            settle, word = None, f"{better} is better than {worse}"
        rows.append(
            (
                *names,
                pair.num_tasks,
                pair.seeds,
                pair.steps,
                difference,
                interval_text(*map(float, pair.found.interval())),
                float(pair.found.p),
                float(p),
                settle,
                ", ".join([word, *pair.reserves]) + ".",
            )
        )
    yield Table(
        slug("comparisons", sweep.study, sweep.variant),
        "Scores",
        f"Factorizations against each other ({sweep.title})",
        "The mean difference over the tasks that both have: paired by seed on each task, summed "
        f"over tasks by Satterthwaite. Score: {sweep.scale}. p (Holm) is corrected for all "
        f"{len(rows)} comparisons of the table and decides, with {ENOUGH_SEEDS} seeds at least. "
        "On unlike devices: on some task the two sides were trained on different kinds of device, "
        "with another matmul precision, or by another engine version. "
        "Seeds to settle, where inconclusive: the number of seeds with which the same test, at the "
        "level of all comparisons, would detect a difference this large with power 0.8.",
        (
            "method", "against", "tasks", "seeds", "steps", "difference", "95 % interval", "p",
            "p (Holm)", "seeds to settle", "conclusion",
        ),
        tuple(rows),
        tuple({"algorithm": a} for a, *_ in found),
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


_PLACE = ("environment", "view", "algorithm", "factorization")


def _tags(cell: Cell) -> dict[str, str]:
    place = (cell.task, cell.view, cell.algorithm, cell.factorization)
    return dict(zip(_PLACE, place, strict=True))


class _Pair(NamedTuple):
    """Two methods on the tasks that both have."""

    found: Contrast
    seeds: int
    """The fewest of a cell."""
    num_tasks: int
    steps: str
    """Whether runs were equally long."""
    incomplete: str
    """Which runs have no score; the others are no fair sample."""
    unlike: bool
    """Whether some were made on other devices, with other products or by other engines."""

    @property
    def reserves(self) -> list[str]:
        """What a reader should bear in mind."""
        unequal = ["at unequal steps"] if self.steps != "equal" else []
        return unequal + (["on unlike devices"] if self.unlike else [])


def _pair(sweep: Sweep, algorithm: str, ours: Method, theirs: Method) -> _Pair | None:
    """Nothing if there is no task of which both have two scores."""
    sides = [
        {(c.task, c.view): c for c in sweep.every(algorithm=algorithm, factorization=f, apart=a)}
        for f, a in (ours, theirs)
    ]
    both = [(sides[0][key], sides[1][key]) for key in sides[0] if key in sides[1]]
    partial = [cell.incomplete for pair in both for cell in pair if cell.incomplete]
    for one in sweep.lost:  # the task on which all runs failed is none that both have
        *_, family, factorization = one.place
        if family == algorithm and factorization in (ours[0], theirs[0]):
            partial.append(one.incomplete)
    pairs = [pair for pair in both if all(cell.scores.size > 1 for cell in pair)]
    if not pairs:
        return None
    share = 1.0 / len(pairs)
    found = by_seed(
        [
            (weight, sample(sweep.scaled(cell, cell.scores), cell.seeds))
            for cell, weight in zip(pair, (share, -share), strict=True)
        ]
        for pair in pairs
    )
    seeds = min(cell.scores.size for pair in pairs for cell in pair)
    unequal = (f"{o.steps:,} and {t.steps:,}" for o, t in pairs if o.steps != t.steps)
    mixed = any(map(unlike, pairs))
    incomplete = partial[0] if partial else ""
    return _Pair(found, seeds, len(pairs), next(unequal, "equal"), incomplete, mixed)
