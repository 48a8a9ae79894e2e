"""Learning curves of a sweep: over all tasks, by action type, and of each environment."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from headwise.envs.reference import reference_score
from headwise.errors import ConfigError
from headwise.report.cells import Band, Cell, band, grid
from headwise.report.figures.figure import Figure, Lines, Series
from headwise.report.figures.together import BAND, line, steps_note, titled, together
from headwise.report.means import Lender
from headwise.report.names import (
    ALGORITHMS,
    DASHES,
    VIEWS,
    actions_name,
    algorithm_name,
    factorization_name,
    in_order,
    slug,
    view_name,
    with_settings,
)
from headwise.report.statistics.aggregates import Array
from headwise.report.sweep import Method, Sweep, methods_of
from headwise.study.measures import NUM_POINTS

SECTION = "Learning curves"


def curve_figures(sweep: Sweep, lender: Lender | None = None) -> Iterator[Figure]:
    """Every figure of learning curves: of the cells of which there are any.

    Args:
        sweep: The runs.
        lender: What has curves for cells whose runs have none.
    """
    cells = [cell if lender is None else lender.lend(cell) for cell in sweep.cells]
    known = replace(sweep, cells=tuple(c for c in cells if np.isfinite(c.curves).any()))
    if len(known.tasks) > 1:  # of one task the figure of its environment says it all
        yield _noted(_by_type_and_family(known), known.cells, sweep.cells)
    if len({cell.view for cell in known.cells}) > 1:
        yield _noted(_by_family(known), known.cells, sweep.cells)
        yield _noted(_types(known), known.cells, sweep.cells)
    for task in known.tasks:
        for v in in_order((c.view for c in known.every(task=task)), VIEWS):
            mine = known.every(task=task, view=v)
            yield _noted(_environment(sweep, mine), mine, sweep.every(task=task, view=v))


def _noted(figure: Figure, drawn: Sequence[Cell], there: Sequence[Cell]) -> Figure:
    missing = len(there) - len(drawn)
    note = f" {missing} of {len(there)} cells have no curve." if missing else ""
    return replace(figure, caption=figure.caption + _lent_note(drawn) + note)


def _same(panels: Sequence[Lines]) -> str:
    """What a title with a number of tasks means, with a space before it, if there is one."""
    if not any(": " in panel.title for panel in panels):
        return ""
    return " The lines of a panel are over the tasks that all of them have, as its title says."


def _name(sweep: Sweep, *words: str) -> str:
    return slug(*words, sweep.study, sweep.variant)


def _label(method: Method) -> str:
    return with_settings(factorization_name(method[0]), method[1])


def _dashes(methods: Sequence[Method]) -> list[str]:
    """Solid lines; further ones of the same factorization, and so of the same color, are not."""
    found = []
    for _, alike in itertools.groupby(methods, key=lambda method: method[0]):
        found += [dash for _, dash in zip(alike, itertools.cycle(DASHES), strict=False)]
    return found


def _panel(sweep: Sweep, title: str, cells: Sequence[Cell], **tags: str) -> Lines:
    """A line for each method: the mean over tasks (and views)."""
    methods = methods_of(cells)
    lines = together(
        {m: [c for c in cells if (c.factorization, c.apart) == m] for m in methods},
    )
    series = []
    for method, dash in zip(methods, _dashes(methods), strict=True):
        found = band([sweep.scaled(cell, cell.curves) for cell in lines.cells[method]])
        series.append(line(method[0], _label(method) + lines.words[method], found, dash))
    title += lines.title
    return Lines(title, grid(), tuple(series), "share of the steps", "score", tags=tags)


def _by_type_and_family(sweep: Sweep) -> Figure:
    panels = [
        _panel(
            sweep,
            f"{algorithm_name(a)}, {view_name(v).lower()}",
            sweep.every(algorithm=a, view=v),
            algorithm=a,
            view=v,
        )
        for a in in_order((c.algorithm for c in sweep.cells), ALGORITHMS)
        for v in in_order((c.view for c in sweep.cells), VIEWS)
    ]
    return Figure(
        _name(sweep, "curves-by-type-and-family"),
        SECTION,
        titled("Mean over environments, by action type and algorithm", sweep),
        f"Score: {sweep.scale}. {BAND}" + _same(panels) + steps_note(sweep.cells),
        tuple(panels),
        columns=len({c.view for c in sweep.cells}),
    )


def _by_family(sweep: Sweep) -> Figure:
    panels = tuple(
        _panel(
            sweep,
            algorithm_name(a),
            [c for c in sweep.every(algorithm=a) if c.factorization != "joint"],
            algorithm=a,
        )
        for a in in_order((c.algorithm for c in sweep.cells), ALGORITHMS)
    )
    return Figure(
        _name(sweep, "curves-by-family"),
        SECTION,
        titled("Mean over environments and action types, by algorithm", sweep),
        f"Score: {sweep.scale}. A task is an environment with an action type; joint is left out, "
        f"as only discrete actions have it. {BAND}" + _same(panels) + steps_note(sweep.cells),
        panels,
    )


def _types(sweep: Sweep) -> Figure:
    """Action types against each other, every run cut to the shortest budget of its task."""
    panels = []
    for a in in_order((c.algorithm for c in sweep.cells), ALGORITHMS):
        cells = [c for c in sweep.every(algorithm=a) if c.factorization != "joint"]
        lines = together(
            {
                v: [c for c in cells if c.view == v]
                for v in in_order((c.view for c in cells), VIEWS)
            },
            key=lambda cell: (cell.task, cell.factorization, cell.apart),
        )
        series = [
            line(v, view_name(v) + lines.words[v], band([_cut(sweep, c) for c in lines.cells[v]]))
            for v in lines.cells
        ]
        title = algorithm_name(a) + lines.title
        panels.append(
            Lines(title, grid(), tuple(series), "share of the steps", "score",
                  tags={"algorithm": a})
        )  # fmt: skip
    return Figure(
        _name(sweep, "curves-by-action-type"),
        SECTION,
        titled("Action types against each other, mean over environments and factorizations", sweep),
        f"Score: {sweep.scale}. A task is an environment with a factorization; joint is left out, "
        "as only discrete actions have it. Runs that had more steps are cut to the shortest budget "
        f"of their environment and algorithm. {BAND}" + _same(panels),
        tuple(panels),
    )


def _cut(sweep: Sweep, cell: Cell) -> Array:
    """A cell's curves as if they had ended where the shortest of its task does."""
    shortest = min(c.steps for c in sweep.every(task=cell.task, algorithm=cell.algorithm))
    return sweep.scaled(cell, cut(cell.curves, cell.steps, shortest))


def cut(curves: Array, steps: int, shortest: int) -> Array:
    """Curves as if they had ended earlier, over as many points."""
    if steps == shortest:
        return curves
    points = np.arange(1, NUM_POINTS + 1) * (shortest / steps)
    shares = np.arange(1, NUM_POINTS + 1)
    return np.stack([np.interp(points, shares, curve) for curve in curves])


def _environment(sweep: Sweep, cells: Sequence[Cell]) -> Figure:
    """The returns of one task, against environment steps."""
    task, view = cells[0].task, cells[0].view
    panels = []
    for a in in_order((c.algorithm for c in cells), ALGORITHMS):
        mine = [cell for cell in cells if cell.algorithm == a]
        methods = [(cell.factorization, cell.apart) for cell in mine]
        x = np.unique(np.concatenate([grid(cell.steps) for cell in mine]))
        series = [
            _until_its_end(cell, x, dash) for cell, dash in zip(mine, _dashes(methods), strict=True)
        ]
        series += [_in_training(cell, x) for cell in mine if cell.is_evaluated]
        panels.append(
            Lines(
                algorithm_name(a),
                x,
                tuple(series),
                "environment steps",
                "return",
                references=_references(mine[0]),
                tags={"environment": task, "view": view, "algorithm": a},
            )
        )
    return Figure(
        _name(sweep, "environment", task, view),
        SECTION,
        titled(f"{task}, {actions_name(view)}", sweep),
        f"{_what_is_drawn(cells)}; a line ends where its runs end. {BAND}" + steps_note(cells),
        tuple(panels),
    )


def _what_is_drawn(cells: Sequence[Cell]) -> str:
    training = "ean return of the episodes that ended in each fiftieth of the run"
    if not any(cell.is_evaluated for cell in cells):
        return f"M{training}"
    return f"Mean return of greedy evaluations; dotted, the m{training}, while it explores"


def _lent_note(cells: Sequence[Cell]) -> str:
    """What is not of the cells' own runs, with a space before it."""
    lent = [cell.lent for cell in cells if cell.lent is not None]
    means = sum(one.is_mean for one in lent)
    note = ""
    for words in sorted({one.words for one in lent if not one.is_mean}):
        count = sum(one.words == words for one in lent)
        note += f" Of {count} of {len(cells)} cells the curves are those of other runs ({words})."
    if means:
        note += (
            f" Of {means} of {len(cells)} cells the runs' own curves are not stored: only their "
            "mean and its interval are, dotted where they are a line of their own."
        )
    return note


def _until_its_end(cell: Cell, x: Array, dash: str) -> Series:
    """A cell's curve at given steps, nothing beyond its own."""
    label = _label((cell.factorization, cell.apart))
    if cell.lent is not None:
        dash = "dot" if cell.lent.is_mean else dash
        label = f"{label} ({cell.lent.words})"
    return line(cell.factorization, label, _at(band([cell.curves]), grid(cell.steps), x), dash)


def _in_training(cell: Cell, x: Array) -> Series:
    """The returns in training of a cell whose line is that of its evaluations; without a band."""
    found = band([cell.training_curves])
    nothing = np.full_like(found.mean, np.nan)
    bare = _at(Band(found.mean, nothing, nothing, nothing, found.num_runs), grid(cell.steps), x)
    label = f"{_label((cell.factorization, cell.apart))} (training)"
    return line(cell.factorization, label, bare, "dot")


def _at(found: Band, own: Array, x: Array) -> Band:
    """A band at given steps, nothing beyond its own."""
    if x.size > own.size:
        mean, low, high, error = (
            np.interp(x, own, values, left=np.nan, right=np.nan)
            for values in (found.mean, found.low, found.high, found.error)
        )
        found = Band(mean, low, high, error, found.num_runs)
    return found


def _references(cell: Cell) -> tuple[tuple[str, float], ...]:
    run = cell.runs[0]
    try:
        known = reference_score(run.env, **(run.config.get("env_settings") or {}), view=cell.view)
    except ConfigError:
        return ()
    return (("random play", known.random.mean), ("best known", known.best.mean))
