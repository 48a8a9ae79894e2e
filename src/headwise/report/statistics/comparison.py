"""Is one method better than another: Welch and paired tests, effect size, Holm's correction.

Everything works on the last axis, so that many comparisons are one call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headwise.errors import ConfigError
from headwise.report.statistics.aggregates import Array
from headwise.report.statistics.contrasts import Contrast, contrast
from headwise.report.statistics.pairing import Sample, difference
from headwise.report.statistics.rounding import variance, without_rounding


class Comparison(NamedTuple):
    """The difference of two means, with its interval, test and size; batch axes are kept."""

    difference: Array
    low: Array
    high: Array
    t: Array
    df: Array
    p: Array
    """Two-sided."""
    d: Array
    """Cohen's d: the difference in units of the pooled standard deviation."""


def compare(ours: Sample, theirs: Sample, *, confidence: float = 0.95) -> Comparison:
    """The test that decides: paired where both sides have the same seeds, else Welch's."""
    a, b = _runs(ours.values), _runs(theirs.values)
    return _test(difference(ours, theirs), cohens_d(a, b), confidence)


def welch(ours: ArrayLike, theirs: ArrayLike, *, confidence: float = 0.95) -> Comparison:
    """Welch's test of two sets of runs that need not spread alike, (..., n) and (..., m)."""
    a, b = _runs(ours), _runs(theirs)
    return _test(contrast([a, b], [1.0, -1.0]), cohens_d(a, b), confidence)


def paired(ours: ArrayLike, theirs: ArrayLike, *, confidence: float = 0.95) -> Comparison:
    """The paired t-test: run i of one side belongs to run i of the other (the same seed)."""
    a, b = _runs(ours), _runs(theirs)
    if a.shape != b.shape:
        raise ConfigError(
            "a paired test needs as many runs on both sides",
            got=f"{a.shape[-1]} and {b.shape[-1]}",
            fix="Use welch, or keep the seeds that both have.",
        )
    differences = without_rounding(a - b, np.maximum(np.abs(a), np.abs(b)))
    return _test(contrast([differences]), cohens_d(a, b), confidence)


def cohens_d(ours: ArrayLike, theirs: ArrayLike) -> Array:
    """The difference of means over the pooled standard deviation; infinite where nothing varies."""
    a, b = _runs(ours), _runs(theirs)
    return Contrast(contrast([a, b], [1.0, -1.0]).value, pooled_sd(a, b), np.ones(())).t


def pooled_sd(ours: Array, theirs: Array) -> Array:
    """The standard deviation of both sides around the mean of each."""
    n, m = ours.shape[-1], theirs.shape[-1]
    squares = (n - 1) * variance(ours) + (m - 1) * variance(theirs)
    return np.asarray(np.sqrt(squares / (n + m - 2)))


def holm(p_values: ArrayLike) -> Array:
    """Holm's adjusted p-values, (n,): below alpha means significant among all n comparisons."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = p[order] * np.arange(p.size, 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def _runs(values: ArrayLike) -> Array:
    runs = np.asarray(values, dtype=np.float64)
    if runs.ndim == 0 or runs.shape[-1] < 2:
        raise ConfigError(
            "a test needs at least two runs on each side",
            got=runs.shape,
            fix="Run more seeds.",
        )
    return runs


def _test(found: Contrast, d: Array, confidence: float) -> Comparison:
    return Comparison(found.value, *found.interval(confidence), found.t, found.df, found.p, d)
