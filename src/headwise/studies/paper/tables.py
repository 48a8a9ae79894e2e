"""The two tables of the factorial study, with the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from headwise.report.names import factorization_name, slug
from headwise.report.statistics import Sample, compare, difference, holm, sample, seeds_to_settle
from headwise.report.statistics.aggregates import Array
from headwise.report.sweep import NotMeasuredError
from headwise.report.tables.table import Table, interval_text
from headwise.studies.paper.decoupler_runs import METRICS, Decoupler, measure
from headwise.studies.paper.published import FACTORIAL, SIGNIFICANCE

SECTION = "Contextual-Decoupler"


def decoupler_tables(study: Decoupler) -> Iterator[Table]:
    """The factorial table, and what differs in it."""
    if study.kind != "factorial":
        return
    yield _main(study)
    yield _significance(study)


def _known(study: Decoupler, config: tuple[str, str], metric: str) -> Array:
    """The metric of the runs that have it, for a row that does not judge."""
    f, estimator = config
    try:
        runs = study.find(algorithm="ppo", factorization=f, estimator=estimator, critic="online")
    except NotMeasuredError:
        return np.empty(0)
    values = np.array([measure(run, metric) for run in runs])
    return np.asarray(values[np.isfinite(values)])


def _metric(study: Decoupler, config: tuple[str, str], metric: str) -> Sample:
    try:
        return study.metric(config, metric)
    except NotMeasuredError:
        return sample([], [])


def _main(study: Decoupler) -> Table:
    rows = []
    for config in study.configs():
        row: list[Any] = [_label(config), _known(study, config, "final").size]
        published = FACTORIAL.get(config)
        for metric in METRICS:
            values = _known(study, config, metric)
            row.append(_spread(values, metric) if values.size else None)
            known = getattr(published, metric) if published else None
            row.append(_pair(known[0], known[1], metric) if known else None)
        rows.append(tuple(row))
    columns = ["critic and estimator", "seeds"]
    for title in METRICS.values():
        columns += [title, "paper"]
    return Table(
        slug("decoupler-factorial", study.preset, study.study),
        SECTION,
        f"Factorial study on the Contextual-Decoupler, {study.title}",
        "Mean ± standard deviation over seeds. Final return: mean of the last 50 smoothed points; "
        "AUC: mean of the smoothed curve; steps to 50: all steps where it is never reached; "
        "inact/act: variance of the inactive head's advantage over the active one's, last third.",
        tuple(columns),
        tuple(rows),
    )


def _significance(study: Decoupler) -> Table:
    found = []
    for config in study.configs():
        f, estimator = config
        bases = [("shared", ""), (f, "uniform")]
        for base in bases:
            if base == config or f == "shared" or (base[0] == "shared" and estimator != "uniform"):
                continue
            for metric in ("final", "auc", "steps"):
                ours, theirs = _metric(study, config, metric), _metric(study, base, metric)
                if min(ours.values.size, theirs.values.size) >= 2:
                    found.append((config, base, metric, ours, theirs))
    tests = [compare(ours, theirs) for *_, ours, theirs in found]
    adjusted = holm([float(test.p) for test in tests])
    rows = []
    for (config, base, metric, ours, theirs), test, p in zip(found, tests, adjusted, strict=True):
        paper = SIGNIFICANCE.get((*config, metric)) if base[0] != "shared" else None
        seeds = min(ours.values.size, theirs.values.size)
        wanted = seeds_to_settle(difference(ours, theirs), seeds, alpha=0.05 / len(found))
        rows.append(
            (
                f"{_label(config)} minus {_label(base)}",
                METRICS[metric],
                float(test.difference),
                interval_text(float(test.low), float(test.high)),
                float(test.t),
                float(test.d),
                float(test.p),
                float(p),
                None if paper is None else paper.difference,
                None if paper is None else paper.d,
                None if p < 0.05 else "> 100,000" if wanted is None else wanted,
            )
        )
    return Table(
        slug("decoupler-significance", study.preset, study.study),
        SECTION,
        f"What differs in the factorial study, {study.title}",
        "Two-sided tests, of pairs that share a seed (Welch's where the sides have other seeds); "
        f"p (Holm) is corrected for all {len(rows)} comparisons of the table. Seeds to settle, "
        "where it is not below 0.05: with how many a side the same test at the level of all "
        "comparisons would show a difference as large as this, with power 0.8. "
        "What has runs that failed is not compared: those that are left may be the lucky ones.",
        (
            "comparison", "metric", "difference", "95 % interval", "t", "Cohen's d", "p",
            "p (Holm)",            "paper's difference", "paper's d", "seeds to settle",
        ),
        tuple(rows),
    )  # fmt: skip


def _label(config: tuple[str, str]) -> str:
    f, estimator = config
    return "no mixing" if f == "shared" else f"{factorization_name(f)} {estimator}"


def _spread(values: Array, metric: str) -> str:
    return _pair(float(values.mean()), float(values.std(ddof=min(1, values.size - 1))), metric)


def _pair(mean: float, spread: float, metric: str) -> str:
    if metric == "steps":
        return f"{mean:.0f} ± {spread:.0f}"
    digits = 3 if metric == "ratio" else 1
    return f"{mean:.{digits}f} ± {spread:.{digits}f}"
