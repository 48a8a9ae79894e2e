"""Learning curves of a sweep: over all tasks, by action type, and of each environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from headwise.envs.reference import reference_score
from headwise.errors import ConfigError
from headwise.report.cells import Cell, band, grid
from headwise.report.figures.figure import Figure, Lines, Series
from headwise.report.names import (
    ALGORITHMS,
    FACTORIZATIONS,
    VIEWS,
    algorithm_name,
    factorization_name,
    in_order,
    slug,
    view_name,
)
from headwise.report.statistics.aggregates import Array
from headwise.report.sweep import Sweep
from headwise.study.measures import NUM_POINTS

SECTION = "Learning curves"
BAND = "Bands: 95 % stratified bootstrap over seeds."


def curve_figures(sweep: Sweep) -> Iterator[Figure]:
    """Every figure of learning curves: of the cells of which there are any."""
    known = replace(sweep, cells=tuple(c for c in sweep.cells if np.isfinite(c.curves).any()))
    if not known.cells:
        return
    missing = len(sweep.cells) - len(known.cells)
    note = f" {missing} of {len(sweep.cells)} cells have no curve." if missing else ""
    for figure in (_by_type_and_family(known), _by_family(known), _types(known)):
        yield replace(figure, caption=figure.caption + note)
    yield from _environments(known)


def _name(sweep: Sweep, *words: str) -> str:
    return slug(*words, sweep.study, sweep.variant)


def _series(sweep: Sweep, cells: Sequence[Cell], name: str) -> tuple[Series, ...]:
    """A line for each factorization: the mean over the tasks (and views) of its cells."""
    series = []
    for f in in_order((cell.factorization for cell in cells), FACTORIZATIONS):
        strata = [sweep.scaled(c, c.curves) for c in cells if c.factorization == f]
        found = band(strata, f"{name}/{f}")
        series.append(
            Series(f, factorization_name(f), found.mean, found.low, found.high,
                   num_runs=found.num_runs)
        )  # fmt: skip
    return tuple(series)


def _by_type_and_family(sweep: Sweep) -> Figure:
    panels = []
    for a in in_order((c.algorithm for c in sweep.cells), ALGORITHMS):
        for v in in_order((c.view for c in sweep.cells), VIEWS):
            cells = sweep.where(algorithm=a, view=v)
            panels.append(
                Lines(
                    f"{algorithm_name(a)}, {view_name(v).lower()}",
                    grid(),
                    _series(sweep, cells, f"type-family/{a}/{v}"),
                    "share of the steps",
                    "score",
                    tags={"algorithm": a, "view": v},
                )
            )
    return Figure(
        _name(sweep, "curves-by-type-and-family"),
        SECTION,
        "Mean over all environments, by action type and algorithm",
        f"Score: {sweep.scale}. Joint exists for discrete actions only. {BAND}",
        tuple(panels),
        columns=len({c.view for c in sweep.cells}),
    )


def _by_family(sweep: Sweep) -> Figure:
    panels = tuple(
        Lines(
            algorithm_name(a),
            grid(),
            _series(sweep, sweep.where(algorithm=a), f"family/{a}"),
            "share of the steps",
            "score",
            tags={"algorithm": a},
        )
        for a in in_order((c.algorithm for c in sweep.cells), ALGORITHMS)
    )
    return Figure(
        _name(sweep, "curves-by-family"),
        SECTION,
        "Mean over all environments and action types, by algorithm",
        f"Score: {sweep.scale}. {BAND}",
        panels,
    )


def _types(sweep: Sweep) -> Figure:
    """Action types against each other, every run cut to the shortest budget of its task."""
    panels = []
    for a in in_order((c.algorithm for c in sweep.cells), ALGORITHMS):
        series = []
        for v in in_order((c.view for c in sweep.where(algorithm=a)), VIEWS):
            strata = [
                sweep.scaled(c, _cut(c.curves, c.steps, _shortest(sweep, c)))
                for c in sweep.where(algorithm=a, view=v)
                if c.factorization != "joint"
            ]
            found = band(strata, f"types/{a}/{v}")
            series.append(
                Series(v, view_name(v), found.mean, found.low, found.high, num_runs=found.num_runs)
            )
        panels.append(
            Lines(
                algorithm_name(a),
                grid(),
                tuple(series),
                "share of the steps",
                "score",
                tags={"algorithm": a},
            )
        )
    return Figure(
        _name(sweep, "curves-by-action-type"),
        SECTION,
        "Action types against each other, mean over environments and factorizations",
        f"Score: {sweep.scale}. Runs that had more steps are cut to the shortest budget of their "
        f"environment and algorithm; joint is left out, as only discrete actions have it. {BAND}",
        tuple(panels),
    )


def _shortest(sweep: Sweep, cell: Cell) -> int:
    return min(c.steps for c in sweep.where(task=cell.task, algorithm=cell.algorithm))


def _cut(curves: Array, steps: int, shortest: int) -> Array:
    """Curves as if they had ended earlier, over as many points."""
    if steps == shortest:
        return curves
    points = np.arange(1, NUM_POINTS + 1) * (shortest / steps)
    shares = np.arange(1, NUM_POINTS + 1)
    return np.stack([np.interp(points, shares, curve) for curve in curves])


def _environments(sweep: Sweep) -> Iterator[Figure]:
    for task in sweep.tasks:
        for v in in_order((c.view for c in sweep.every(task=task)), VIEWS):
            panels = []
            for a in in_order((c.algorithm for c in sweep.every(task=task, view=v)), ALGORITHMS):
                cells = sweep.every(task=task, view=v, algorithm=a)
                series = []
                for cell in cells:
                    found = band([cell.curves], f"environment/{cell.name}")
                    series.append(
                        Series(cell.factorization, factorization_name(cell.factorization),
                               found.mean, found.low, found.high, num_runs=found.num_runs)
                    )  # fmt: skip
                panels.append(
                    Lines(
                        algorithm_name(a),
                        grid(max(cell.steps for cell in cells)),
                        tuple(series),
                        "environment steps",
                        "return",
                        references=_references(cells[0]),
                        tags={"environment": task, "view": v, "algorithm": a},
                    )
                )
            yield Figure(
                _name(sweep, "environment", task, v),
                SECTION,
                f"{task}, {view_name(v).lower()} actions",
                f"Mean return of the episodes that ended in each fiftieth of the run. {BAND}",
                tuple(panels),
            )


def _references(cell: Cell) -> tuple[tuple[str, float], ...]:
    run = cell.runs[0]
    try:
        known = reference_score(run.env, **(run.config.get("env_settings") or {}), view=cell.view)
    except ConfigError:
        return ()
    return (("random play", known.random.mean), ("best known", known.best.mean))
