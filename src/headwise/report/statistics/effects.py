"""Sizes of effects with intervals: Cohen's d, and how many times as widely one side spreads."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from headwise.averages import CONFIDENCE
from headwise.report.statistics.aggregates import Array
from headwise.report.statistics.bootstrap import Estimate
from headwise.report.statistics.comparison import pooled_sd, welch
from headwise.report.statistics.contrasts import contrast


def effect_size(ours: ArrayLike, theirs: ArrayLike, *, confidence: float = CONFIDENCE) -> Estimate:
    """Cohen's d of two sets of runs, with the interval of the non-central t of Welch's test."""
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    test, error = welch(a, b), float(contrast([a, b], [1.0, -1.0]).error)
    if error == 0.0:
        return Estimate(*[float(test.d)] * 3)
    tail, unit = (1.0 - confidence) / 2.0, error / float(pooled_sd(a, b))
    bounds = (special.nctdtrinc(test.df, share, test.t) * unit for share in (1.0 - tail, tail))
    return Estimate(float(test.d), *map(float, bounds))


def spread_ratio(ours: ArrayLike, theirs: ArrayLike, *, confidence: float = CONFIDENCE) -> Estimate:
    """The standard deviation of ours over that of theirs, with Miller's jackknife interval.

    The F test takes runs to be normal, and of skewed ones promises far too much; this does not.
    Miller (1968), https://doi.org/10.1214/aoms/1177698418.
    """
    a, b = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(np.divide(a.std(ddof=1), b.std(ddof=1)))
        found = contrast([_log_spreads(a), _log_spreads(b)], [1.0, -1.0])
        low, high = (float(np.exp(end)) for end in found.interval(confidence))
    return Estimate(value, low, high) if low <= high else Estimate(value, 0.0, np.inf)


def _log_spreads(runs: Array) -> Array:
    """What each run says of the logarithm of the standard deviation: pseudo-values, (n,)."""
    n = runs.size
    if n < 3:
        return np.zeros(1)  # nothing is left to vary
    rest = np.tile(runs, (n, 1))[~np.eye(n, dtype=bool)].reshape(n, n - 1).std(axis=-1, ddof=1)
    return np.asarray(n * np.log(runs.std(ddof=1)) - (n - 1) * np.log(rest))
