"""Scores of a sweep: heatmap, intervals, profiles, who beats whom, and compute against score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from headwise.report.cells import Band, Cell
from headwise.report.figures.figure import (
    Dot,
    Figure,
    Heat,
    Intervals,
    Lines,
    Point,
    Scatter,
)
from headwise.report.figures.together import (
    counted,
    counts_note,
    line,
    scores_note,
    steps_note,
    titled,
)
from headwise.report.names import (
    ALGORITHMS,
    DASHES,
    VIEWS,
    algorithm_name,
    factorization_name,
    generator_for,
    in_order,
    method_name,
    slug,
    view_name,
    with_settings,
)
from headwise.report.statistics import (
    estimate,
    iqm,
    performance_profile,
    probability_of_improvement,
)
from headwise.report.statistics.aggregates import Array
from headwise.report.sweep import Method, Sweep, methods_of

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
    if len({(cell.task, cell.view) for cell in sweep.where()}) > 1:
        yield _profiles(sweep)
    if any(len(_methods(sweep, a)) > 1 for a in _algorithms(sweep)):
        yield _improvement(sweep)
    yield _compute(sweep)


def _name(sweep: Sweep, word: str) -> str:
    return slug(word, sweep.study, sweep.variant)


def _algorithms(sweep: Sweep) -> list[str]:
    return in_order((c.algorithm for c in sweep.where()), ALGORITHMS)


def _methods(sweep: Sweep, algorithm: str) -> list[Method]:
    return methods_of(sweep.where(algorithm=algorithm))


def _lines(sweep: Sweep, algorithm: str) -> dict[Method, Sequence[Cell]]:
    return {method: sweep.of(algorithm, method) for method in _methods(sweep, algorithm)}


def _label(method: Method, words: Mapping[Method, str]) -> str:
    return with_settings(factorization_name(method[0]), method[1]) + words[method]


def _strata(sweep: Sweep, cells: Sequence[Cell]) -> list[Array]:
    return [sweep.scaled(cell, cell.scores) for cell in cells]


def _words(sweep: Sweep, word: str, algorithm: str, *methods: Method) -> tuple[str, ...]:
    """What names the chance behind an interval."""
    return (word, sweep.study, sweep.variant, algorithm, *("".join(method) for method in methods))


def _heatmap(sweep: Sweep) -> Figure:
    rows = [
        (task, v)
        for task in sweep.tasks
        for v in in_order((c.view for c in sweep.every(task=task)), VIEWS)
    ]
    algorithms = in_order((c.algorithm for c in sweep.cells), ALGORITHMS)
    columns = [
        (a, f, apart) for a in algorithms for f, apart in methods_of(sweep.every(algorithm=a))
    ]
    values = np.full((len(rows), len(columns)), np.nan)
    texts = [[""] * len(columns) for _ in rows]
    cells = {(c.task, c.view, c.algorithm, c.factorization, c.apart): c for c in sweep.cells}
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            cell = cells.get((*row, *column))
            if cell is None:
                continue
            name = f"{row[0]}, {view_name(row[1]).lower()}, {method_name(*column)}"
            if not cell.scores.size:
                texts[i][j] = f"{name}: no episode has ended"
                continue
            values[i, j] = iqm([sweep.scaled(cell, cell.scores)])
            raw = cell.scores
            spread = f" ± {raw.std(ddof=1):.2g}" if raw.size > 1 else ""
            texts[i][j] = (
                f"{name}: score {values[i, j]:.2f}, return {raw.mean():.4g}{spread}, "
                f"seeds: {raw.size}, steps: {cell.steps:,}"
                + (f", without a score: {cell.unscored}" if cell.unscored else "")
            )
    panel = Heat(
        "Interquartile mean of the final score",
        tuple(f"{task}, {view_name(v).lower()}" for task, v in rows),
        tuple(method_name(*column) for column in columns),
        values,
        tuple(map(tuple, texts)),
        row_tags=tuple({"environment": task, "view": v} for task, v in rows),
        column_tags=tuple({"algorithm": a, "factorization": f} for a, f, _ in columns),
    )
    return Figure(
        _name(sweep, "score-heatmap"),
        SECTION,
        titled("Every environment, action type and method", sweep),
        f"Score: {sweep.scale}. Empty where the pair does not exist or has not been run, a dot "
        "where no episode has ended."
        + steps_note(sweep.cells, ("task", "view"))
        + scores_note(sweep),
        (panel,),
        columns=1,
    )


def _intervals(sweep: Sweep) -> Figure:
    panels: list[Intervals] = []
    said: list[str] = []
    for a in _algorithms(sweep):
        lines, dots = _lines(sweep, a), []
        words = counted(lines)
        said += words.values()
        for method, cells in lines.items():
            rng = generator_for(*_words(sweep, "intervals", a, method))
            found = estimate(_strata(sweep, cells), iqm, rng)
            runs = sum(cell.scores.size for cell in cells)
            dots.append(Dot(method[0], _label(method, words), *found, num_runs=runs))
        panels.append(Intervals(algorithm_name(a), tuple(dots), "IQM score", {"algorithm": a}))
    return Figure(
        _name(sweep, "score-intervals"),
        SECTION,
        titled("Interquartile mean over environments and action types", sweep),
        f"Score: {sweep.scale}. 95 % intervals, Student's with the standard error of the "
        "stratified bootstrap; a single seed has none."
        + counts_note(said)
        + steps_note(sweep.where())
        + scores_note(sweep),
        tuple(panels),
    )


def _profiles(sweep: Sweep) -> Figure:
    panels: list[Lines] = []
    said: list[str] = []
    every = np.concatenate(_strata(sweep, sweep.where()))
    low, high = min(0.0, float(np.quantile(every, 0.02))), max(1.0, float(every.max()))
    thresholds = np.linspace(low, high, 61)
    for a in _algorithms(sweep):
        lines, series = _lines(sweep, a), []
        words = counted(lines)
        said += words.values()
        for method, cells in lines.items():
            strata = _strata(sweep, cells)
            rng = generator_for(*_words(sweep, "profiles", a, method))
            found = performance_profile(strata, thresholds, rng, samples=1000)
            runs = sum(map(len, strata))
            shown = Band(found.share, found.low, found.high, np.full_like(found.low, np.nan), runs)
            alike = [other for other in lines if other[0] == method[0]]
            dash = DASHES[alike.index(method) % len(DASHES)]
            series.append(line(method[0], _label(method, words), shown, dash))
        panels.append(
            Lines(
                algorithm_name(a), thresholds, tuple(series), "score", "share of runs above",
                tags={"algorithm": a},
            )
        )  # fmt: skip
    return Figure(
        _name(sweep, "performance-profiles"),
        SECTION,
        titled("Performance profiles: the share of runs that score more", sweep),
        f"Score: {sweep.scale}. Bands: percentiles of the stratified bootstrap (95 %), a little "
        "narrow with few seeds."
        + counts_note(said)
        + steps_note(sweep.where())
        + scores_note(sweep),
        tuple(panels),
    )


def _improvement(sweep: Sweep) -> Figure:
    panels = []
    for a in _algorithms(sweep):
        kinds = _methods(sweep, a)
        values = np.full((len(kinds), len(kinds)), np.nan)
        texts = [[""] * len(kinds) for _ in kinds]
        names = tuple(with_settings(factorization_name(f), apart) for f, apart in kinds)
        for i, ours in enumerate(kinds):
            for j, theirs in enumerate(kinds):
                pairs = _pairs(sweep, a, ours, theirs)
                if i == j or not pairs:
                    continue
                rng = generator_for(*_words(sweep, "improvement", a, ours, theirs))
                found = probability_of_improvement(
                    [p for p, _ in pairs], [q for _, q in pairs], rng, samples=1000
                )
                values[i, j] = found.value
                texts[i][j] = (
                    f"{names[i]} beats {names[j]} with probability {found} over {len(pairs)} tasks"
                )
        tags = tuple({"factorization": f} for f, _ in kinds)
        panels.append(
            Heat(algorithm_name(a), names, names, values, tuple(map(tuple, texts)),
                 row_tags=tags, column_tags=tags, tags={"algorithm": a})
        )  # fmt: skip
    return Figure(
        _name(sweep, "probability-of-improvement"),
        SECTION,
        titled("The probability that a run of the row beats a run of the column", sweep),
        "On the same task, ties counted half, averaged over the tasks that both have."
        + steps_note(sweep.where())
        + scores_note(sweep),
        tuple(panels),
    )


def _pairs(sweep: Sweep, algorithm: str, ours: Method, theirs: Method) -> list[tuple[Array, Array]]:
    """Scores of two methods on every task that both have."""
    sides = [{(c.task, c.view): c for c in sweep.of(algorithm, m)} for m in (ours, theirs)]
    return [
        (sweep.scaled(sides[0][key], sides[0][key].scores),
         sweep.scaled(sides[1][key], sides[1][key].scores))
        for key in sides[0] if key in sides[1]
    ]  # fmt: skip


def _compute(sweep: Sweep) -> Figure:
    panels = []
    lines = {(a, m): sweep.of(a, m) for a in _algorithms(sweep) for m in _methods(sweep, a)}
    words = counted(lines)
    scores = {
        (a, m): estimate(_strata(sweep, cells), iqm, generator_for(*_words(sweep, "compute", a, m)))
        for (a, m), cells in lines.items()
    }
    for number, label in COSTS.items():
        points = []
        for (a, method), cells in lines.items():
            costs = np.array([cell.number(number) for cell in cells])
            costs = costs[np.isfinite(costs) & (costs > 0)]
            if not costs.size:
                continue
            points.append(
                Point(
                    method[0],
                    method_name(a, *method) + words[a, method],
                    float(np.exp(np.log(costs).mean())),
                    *scores[a, method],
                    tags={"algorithm": a, "factorization": method[0]},
                )
            )
        panels.append(Scatter(label.capitalize(), tuple(points), label, "IQM score"))
    return Figure(
        _name(sweep, "compute-versus-score"),
        COMPUTE,
        titled("What a factorization costs and what it gives", sweep),
        f"Score: {sweep.scale}. Costs are geometric means over tasks, measured in training; times "
        "are a member's share of its population, so only runs packed alike compare."
        + counts_note(words.values())
        + steps_note(sweep.where(), ("task", "view"))
        + scores_note(sweep),
        tuple(panels),
        columns=2,
    )
