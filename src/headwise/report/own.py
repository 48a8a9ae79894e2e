"""What users register for reports, asked of the results that a report is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from headwise.errors import ConfigError
from headwise.report.cells import Band
from headwise.report.claims.ledger import Claim
from headwise.report.claims.measurement import Evidence, Measurement, of_estimates
from headwise.report.compared import Difference
from headwise.report.figures.figure import Dot, Figure, Intervals, Lines
from headwise.report.figures.together import line
from headwise.report.names import slug
from headwise.report.registry import OwnClaim, own
from headwise.report.results import Results
from headwise.report.rows import NoRunsError
from headwise.report.statistics import contrast
from headwise.report.sweep import IncompleteError, NotMeasuredError

_POINTS = 50
"""Points of a line."""


def own_claims(results: Results) -> Iterator[Claim]:
    """The claims of users."""
    for key, one in own.claims.items():
        yield Claim(
            f"own-{slug(key)}", one.group, "", one.text, "", "difference", one.low, one.high,
            _measure(one, results), one.alike,
        )  # fmt: skip


def own_figures(results: Results) -> Iterator[Figure]:
    """The figures of users that have something to show."""
    for key, one in own.figures.items():
        try:
            drawn = one.draw(results)
        except NoRunsError:
            continue
        panels = tuple(drawn) if isinstance(drawn, Sequence) else (drawn,)
        if not all(isinstance(panel, Lines | Intervals) for panel in panels):
            raise ConfigError(
                f"the figure {key!r} returns no panels",
                got=repr(drawn)[:80],
                allowed="what headwise.report.lines and headwise.report.dots make, or a list of it",
            )
        yield Figure(f"own-{slug(key)}", one.section, one.title, one.caption, panels)


def own_abouts(results: Results) -> dict[str, str]:
    """What is said at the beginning of the sections of users."""
    told = {}
    for name, one in own.sections.items():
        try:
            told[name] = one.tell if isinstance(one.tell, str) else str(one.tell(results))
        except NoRunsError:
            told[name] = ""
    return told


def lines(
    results: Results,
    by: str,
    title: str = "",
    *,
    x_label: str = "environment steps",
    y_label: str = "return",
) -> Lines:
    """A panel of curves: the mean of each group with its 95 % interval over all of its runs.

    Args:
        results: The runs; `results.metric(name)` for curves of a metric.
        by: The trait whose values are lines.
        title: Above the panel.
        x_label: Below it.
        y_label: Beside it.
    """
    curves = {
        value: [curve for run in results.where(**{by: value}) if (curve := run.curve())[0].size]
        for value in results.values(by)
    }
    known = {value: mine for value, mine in curves.items() if mine}
    if not known:
        raise NoRunsError("no run has a curve", got=repr(results))
    end = max(float(steps[-1]) for mine in known.values() for steps, _ in mine)
    x = np.linspace(end / _POINTS, end, _POINTS)
    series = []
    for value, mine in known.items():
        last = min(float(steps[-1]) for steps, _ in mine)
        rows = []
        for steps, values in mine:
            good = np.isfinite(values)
            if good.any():
                rows.append(np.interp(x, steps[good], values[good]))
        if not rows:
            continue
        found = contrast([np.stack(rows).T])
        beyond = x > last * (1.0 + 1e-9)
        mean, low, high, error = (
            np.where(beyond | ~np.isfinite(part), np.nan, part)
            for part in (found.value, *found.interval(), found.error)
        )
        series.append(line(str(value), str(value), Band(mean, low, high, error, len(rows))))
    return Lines(title, x, tuple(series), x_label, y_label)


def dots(results: Results, by: str, title: str = "", *, x_label: str = "IQM score") -> Intervals:
    """A panel of numbers with intervals: the IQM of each group.

    Args:
        results: The runs.
        by: The trait whose values are rows.
        title: Above the panel.
        x_label: Below it.
    """
    rows = tuple(
        Dot(str(one.group[0]), str(one.group[0]), *one.estimate, num_runs=one.runs)
        for one in results.iqm(by)
    )
    return Intervals(title, rows, x_label)


def _measure(asked: OwnClaim, results: Results) -> Callable[[Evidence], Measurement]:
    def measure(_: Evidence) -> Measurement:
        try:
            found = asked.ask(results)
        except NoRunsError as missing:
            raise NotMeasuredError(str(missing)) from missing
        if not isinstance(found, Difference):
            raise ConfigError(
                f"the claim {asked.text!r} must be measured by a difference of results",
                got=type(found).__name__,
                allowed="results.where(...) - results.where(...)",
            )
        if found.incomplete:
            raise IncompleteError(found.incomplete)
        contrast = found.contrast
        return of_estimates(contrast.estimate, found.seeds, 1.0, found.unequal, found.unlike)

    return measure
