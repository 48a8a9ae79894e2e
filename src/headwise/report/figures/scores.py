"""Scores of a sweep: heatmap, intervals, profiles, who beats whom, and compute against score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from headwise.report.cells import Cell
from headwise.report.figures.figure import (
    Dot,
    Figure,
    Heat,
    Intervals,
    Lines,
    Point,
    Scatter,
    Series,
)
from headwise.report.names import (
    ALGORITHMS,
    FACTORIZATIONS,
    VIEWS,
    algorithm_name,
    factorization_name,
    generator_for,
    in_order,
    method_name,
    slug,
    view_name,
)
from headwise.report.statistics import (
    estimate,
    iqm,
    performance_profile,
    probability_of_improvement,
)
from headwise.report.statistics.aggregates import Array
from headwise.report.sweep import Sweep

SECTION = "Scores"
COMPUTE = "Compute"
COSTS = {
    "num_parameters": "parameters",
    "act_flops": "floating-point operations per action",
    "update_ms": "milliseconds per update",
    "act_ms": "milliseconds per action",
}
"""What a method costs, by its name in a run's result."""


def score_figures(sweep: Sweep) -> Iterator[Figure]:
    """Every figure of scores."""
    yield _heatmap(sweep)
    if not sweep.where():
        return
    yield _intervals(sweep)
    yield _profiles(sweep)
    yield _improvement(sweep)
    yield _compute(sweep)


def _name(sweep: Sweep, word: str) -> str:
    return slug(word, sweep.study, sweep.variant)


def _algorithms(sweep: Sweep) -> list[str]:
    return in_order((c.algorithm for c in sweep.where()), ALGORITHMS)


def _factorizations(sweep: Sweep, algorithm: str) -> list[str]:
    return in_order((c.factorization for c in sweep.where(algorithm=algorithm)), FACTORIZATIONS)


def _strata(sweep: Sweep, cells: Sequence[Cell]) -> list[Array]:
    return [sweep.scaled(cell, cell.scores) for cell in cells]


def _heatmap(sweep: Sweep) -> Figure:
    rows = [
        (task, v)
        for task in sweep.tasks
        for v in in_order((c.view for c in sweep.every(task=task)), VIEWS)
    ]
    algorithms = in_order((c.algorithm for c in sweep.cells), ALGORITHMS)
    columns = [
        (a, f)
        for a in algorithms
        for f in in_order((c.factorization for c in sweep.every(algorithm=a)), FACTORIZATIONS)
    ]
    values = np.full((len(rows), len(columns)), np.nan)
    texts = [[""] * len(columns) for _ in rows]
    for i, (task, v) in enumerate(rows):
        for j, (a, f) in enumerate(columns):
            for cell in sweep.every(task=task, view=v, algorithm=a, factorization=f):
                name = f"{task}, {view_name(v).lower()}, {method_name(a, f)}"
                if not cell.scores.size:
                    texts[i][j] = f"{name}: no episode has ended"
                    continue
                values[i, j] = iqm([sweep.scaled(cell, cell.scores)])
                raw = cell.scores
                spread = f" ± {raw.std(ddof=1):.2g}" if raw.size > 1 else ""
                texts[i][j] = (
                    f"{name}: score {values[i, j]:.2f}, return {raw.mean():.4g}{spread}, "
                    f"seeds: {raw.size}"
                )
    panel = Heat(
        "Interquartile mean of the final score",
        tuple(f"{task}, {view_name(v).lower()}" for task, v in rows),
        tuple(method_name(a, f) for a, f in columns),
        values,
        tuple(map(tuple, texts)),
        row_tags=tuple({"environment": task, "view": v} for task, v in rows),
        column_tags=tuple({"algorithm": a, "factorization": f} for a, f in columns),
    )
    return Figure(
        _name(sweep, "score-heatmap"),
        SECTION,
        "Every environment, action type and method",
        f"Score: {sweep.scale}. Empty where the pair does not exist or has not been run, a dot "
        "where no episode has ended.",
        (panel,),
        columns=1,
    )


def _intervals(sweep: Sweep) -> Figure:
    panels = []
    for a in _algorithms(sweep):
        dots = []
        for f in _factorizations(sweep, a):
            cells = sweep.where(algorithm=a, factorization=f)
            rng = generator_for("intervals", sweep.study, sweep.variant, a, f)
            found = estimate(_strata(sweep, cells), iqm, rng)
            runs = sum(cell.scores.size for cell in cells)
            dots.append(Dot(f, factorization_name(f), *found, num_runs=runs))
        panels.append(Intervals(algorithm_name(a), tuple(dots), "IQM score", {"algorithm": a}))
    return Figure(
        _name(sweep, "score-intervals"),
        SECTION,
        "Interquartile mean over all environments and action types",
        f"Score: {sweep.scale}. 95 % stratified bootstrap. Joint is over discrete actions only, so "
        "it is not over the same tasks as the others.",
        tuple(panels),
    )


def _profiles(sweep: Sweep) -> Figure:
    panels = []
    every = np.concatenate(_strata(sweep, sweep.where()))
    low, high = min(0.0, float(np.quantile(every, 0.02))), max(1.0, float(every.max()))
    thresholds = np.linspace(low, high, 61)
    for a in _algorithms(sweep):
        series = []
        for f in _factorizations(sweep, a):
            strata = _strata(sweep, sweep.where(algorithm=a, factorization=f))
            rng = generator_for("profiles", sweep.study, sweep.variant, a, f)
            found = performance_profile(strata, thresholds, rng, samples=1000)
            series.append(
                Series(f, factorization_name(f), found.share, found.low, found.high,
                       num_runs=sum(map(len, strata)))
            )  # fmt: skip
        panels.append(
            Lines(
                algorithm_name(a), thresholds, tuple(series), "score", "share of runs above",
                tags={"algorithm": a},
            )
        )  # fmt: skip
    return Figure(
        _name(sweep, "performance-profiles"),
        SECTION,
        "Performance profiles: the share of runs that score more",
        f"Score: {sweep.scale}. 95 % stratified bootstrap bands.",
        tuple(panels),
    )


def _improvement(sweep: Sweep) -> Figure:
    panels = []
    for a in _algorithms(sweep):
        kinds = _factorizations(sweep, a)
        values = np.full((len(kinds), len(kinds)), np.nan)
        texts = [[""] * len(kinds) for _ in kinds]
        for i, ours in enumerate(kinds):
            for j, theirs in enumerate(kinds):
                pairs = _pairs(sweep, a, ours, theirs)
                if i == j or not pairs:
                    continue
                rng = generator_for("improvement", sweep.study, sweep.variant, a, ours, theirs)
                found = probability_of_improvement(
                    [p for p, _ in pairs], [q for _, q in pairs], rng, samples=1000
                )
                values[i, j] = found.value
                texts[i][j] = (
                    f"{factorization_name(ours)} beats {factorization_name(theirs)} with "
                    f"probability {found} over {len(pairs)} tasks"
                )
        names = tuple(factorization_name(f) for f in kinds)
        tags = tuple({"factorization": f} for f in kinds)
        panels.append(
            Heat(algorithm_name(a), names, names, values, tuple(map(tuple, texts)),
                 row_tags=tags, column_tags=tags, tags={"algorithm": a})
        )  # fmt: skip
    return Figure(
        _name(sweep, "probability-of-improvement"),
        SECTION,
        "The probability that a run of the row beats a run of the column",
        "On the same task, ties counted half, averaged over the tasks that both have.",
        tuple(panels),
    )


def _pairs(sweep: Sweep, algorithm: str, ours: str, theirs: str) -> list[tuple[Array, Array]]:
    """Scores of two factorizations on every task that both have."""
    sides = [
        {(c.task, c.view): c for c in sweep.where(algorithm=algorithm, factorization=f)}
        for f in (ours, theirs)
    ]
    return [
        (sweep.scaled(sides[0][key], sides[0][key].scores),
         sweep.scaled(sides[1][key], sides[1][key].scores))
        for key in sides[0] if key in sides[1]
    ]  # fmt: skip


def _compute(sweep: Sweep) -> Figure:
    panels = []
    for number, label in COSTS.items():
        points = []
        for a in _algorithms(sweep):
            for f in _factorizations(sweep, a):
                cells = sweep.where(algorithm=a, factorization=f)
                costs = np.array([cell.number(number) for cell in cells])
                costs = costs[np.isfinite(costs) & (costs > 0)]
                if not costs.size:
                    continue
                rng = generator_for("compute", sweep.study, sweep.variant, a, f)
                found = estimate(_strata(sweep, cells), iqm, rng)
                cost = float(np.exp(np.log(costs).mean()))
                points.append(
                    Point(f, method_name(a, f), cost, *found,
                          tags={"algorithm": a, "factorization": f})
                )  # fmt: skip
        panels.append(Scatter(label.capitalize(), tuple(points), label, "IQM score"))
    return Figure(
        _name(sweep, "compute-versus-score"),
        COMPUTE,
        "What a factorization costs and what it gives",
        f"Score: {sweep.scale}. Costs are geometric means over tasks, measured in training; times "
        "are a member's share of its population, so only runs packed alike compare.",
        tuple(panels),
        columns=2,
    )
