"""Figures of the decoupler studies: learning curves, importance recovery, lambda."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from headwise.report.cells import Band, band
from headwise.report.figures.figure import Figure, Lines
from headwise.report.figures.together import BAND, line
from headwise.report.names import (
    ALGORITHMS,
    DASHES,
    FACTORIZATIONS,
    factorization_name,
    in_order,
    method_name,
    slug,
)
from headwise.report.statistics.aggregates import Array
from headwise.report.sweep import NotMeasuredError
from headwise.studies.paper.decoupler_runs import Decoupler, last_third, smoothed_curve, trait
from headwise.study.records import Record

SECTION = "Contextual-Decoupler"
SMOOTHED = "Return smoothed over episodes as in the paper (0.95 / 0.05)."
_ESTIMATOR_DASH = {"": "solid", "range": "solid", "grad": "dash", "uniform": "dot"}


def decoupler_figures(study: Decoupler) -> Iterator[Figure]:
    """The figures of one decoupler study."""
    if study.kind == "factorial":
        yield _factorial(study)
    if study.kind == "cross_family":
        yield _families(study)
    if study.kind == "lambda":
        yield _lambdas(study)
    if study.kind in ("factorial", "importance"):
        yield from _importance(study)


def _title(study: Decoupler, text: str) -> str:
    return f"{text} ({study.title})" if study.title else text


def _runs(study: Decoupler, **traits: object) -> list[Record]:
    try:
        return study.find(**traits)
    except NotMeasuredError:
        return []


def _points(runs: Sequence[Record]) -> Array:
    return np.linspace(0, max(run.steps for run in runs), 81)[1:]


def _curve(
    runs: Sequence[Record],
    points: Array,
    values: Callable[[Record, Array], Array | None] = smoothed_curve,
) -> Band | None:
    """The band of what runs have at given steps, nothing beyond where they end."""
    own = points[points <= min(run.steps for run in runs)]
    curves = [curve for run in runs if (curve := values(run, own)) is not None]
    if not curves:
        return None
    found, beyond = band([np.stack(curves)]), np.full(points.size - own.size, np.nan)
    if not found.num_runs:
        return None
    ends = (found.mean, found.low, found.high, found.error)
    mean, low, high, error = (np.append(end, beyond) for end in ends)
    return Band(mean, low, high, error, found.num_runs)


def _factorial(study: Decoupler) -> Figure:
    points = _points(study.runs)
    series = []
    for f, estimator in study.configs():
        runs = _runs(study, algorithm="ppo", factorization=f, estimator=estimator)
        if not runs:
            continue
        label = f"{factorization_name(f)} {estimator}".strip() if f != "shared" else "no mixing"
        dash = _ESTIMATOR_DASH.get(estimator, "dashdot")
        if (found := _curve(runs, points)) is not None:
            series.append(line(f, label, found, dash))
    panel = Lines("PPO", points, tuple(series), "environment steps", "smoothed return")
    return Figure(
        slug("decoupler-factorial", study.preset, study.study),
        SECTION,
        _title(study, "Factorial study: critic and importance estimator"),
        f"Study {study.study}. {SMOOTHED} {BAND}",
        (panel,),
        columns=1,
    )


def _families(study: Decoupler) -> Figure:
    points = _points(study.runs)
    panels = []
    for a in in_order((run.algorithm for run in study.runs), ALGORITHMS):
        series = []
        mine = [run for run in study.runs if run.algorithm == a]
        for f in in_order((run.factorization for run in mine), FACTORIZATIONS):
            changes = sorted({trait(run, "change") for run in mine if run.factorization == f})
            for change, dash in zip(changes, itertools.cycle(DASHES), strict=False):
                runs = _runs(study, algorithm=a, factorization=f, change=change)
                if not runs:
                    continue
                label = method_name(a, f) + (f" ({change})" if change else "")
                if (found := _curve(runs, points)) is not None:
                    series.append(line(f, label, found, dash))
        panels.append(
            Lines(ALGORITHMS.get(a, a), points, tuple(series), "environment steps",
                  "smoothed return", tags={"algorithm": a})
        )  # fmt: skip
    return Figure(
        slug("decoupler-families", study.preset, study.study),
        SECTION,
        _title(study, "Every algorithm with shared, VDN and QPLEX critics"),
        f"Study {study.study}. {SMOOTHED} {BAND}",
        tuple(panels),
    )


def _importance(study: Decoupler) -> Iterator[Figure]:
    panels = []
    for metric, title in (
        ("credit/correlation", "Correlation of the weights with the truth"),
        ("credit/accuracy", "Share of states whose active head is found"),
    ):
        points = _points(study.runs)
        series = []
        for f, estimator in study.configs():
            if estimator in ("", "uniform"):
                continue
            for critic in ("online", "offline"):
                runs = [
                    run
                    for run in study.runs
                    if (run.factorization, trait(run, "estimator"), trait(run, "critic"))
                    == (f, estimator, critic)
                ]
                logged = partial(_metric_curve, metric=metric)
                if not runs or (found := _curve(runs, points, logged)) is None:
                    continue
                label = f"{factorization_name(f)} {estimator}"
                label += " offline critic" if critic == "offline" else ""
                dash = DASHES[2 * (critic == "offline") + (estimator == "grad")]
                series.append(line(f, label, found, dash))
        if series:
            panels.append(Lines(title, points, tuple(series), "environment steps", ""))
    if panels:
        yield Figure(
            slug("importance-recovery", study.preset, study.study),
            SECTION,
            _title(study, "Do importance weights find the active head?"),
            f"Study {study.study}. As logged after each update. {BAND}",
            tuple(panels),
            columns=2,
        )


def _metric_curve(run: Record, points: Array, metric: str) -> Array | None:
    step, values = run.metric(metric)
    keep = np.isfinite(values)
    return np.interp(points, step[keep], values[keep]) if keep.any() else None


def _lambdas(study: Decoupler) -> Figure:
    lambdas = sorted({_lambda(run) for run in study.runs if run.algorithm == "ppo"})
    panels = []
    for title, number in (
        ("Final return", lambda run: run.number("final_smoothed")),
        ("inact/act variance ratio", lambda run: last_third(run, "credit/variance_ratio")),
    ):
        series = []
        for f, estimator in study.configs():
            columns = []
            for value in lambdas:
                runs = [
                    run
                    for run in study.runs
                    if (run.factorization, trait(run, "estimator"), _lambda(run))
                    == (f, estimator, value)
                ]
                numbers = np.array([number(run) for run in runs])
                columns.append(numbers[np.isfinite(numbers)])
            if not any(column.size for column in columns):
                continue
            label = f"{factorization_name(f)} {estimator}".strip() if f != "shared" else "no mixing"
            bands = [band([column[:, None]]) for column in columns]
            mean, low, high, error = (
                np.array([getattr(b, side)[0] for b in bands])
                for side in ("mean", "low", "high", "error")
            )
            found = Band(mean, low, high, error, sum(b.num_runs for b in bands))
            series.append(line(f, label, found, _ESTIMATOR_DASH.get(estimator, "dashdot")))
        if series:
            panels.append(
                Lines(title, np.array(lambdas), tuple(series), "lambda of GAE", title, markers=True)
            )
    return Figure(
        slug("lambda-sweep", study.preset, study.study),
        SECTION,
        _title(study, "The same study at other lambdas"),
        f"Study {study.study}. Every variant at the same lambda. {BAND}",
        tuple(panels),
        columns=2,
    )


def _lambda(run: Record) -> float:
    return float(run.settings.get("gae_lambda", 0.95))
