"""Sizes of effects with intervals: Cohen's d, and how many times as widely one side spreads."""

from __future__ import annotations

import numpy as np
from scipy import special

from headwise.averages import CONFIDENCE
from headwise.report.statistics.aggregates import Array
from headwise.report.statistics.bootstrap import Estimate
from headwise.report.statistics.comparison import compare, pooled_sd
from headwise.report.statistics.pairing import Sample, difference


def effect_size(ours: Sample, theirs: Sample, *, confidence: float = CONFIDENCE) -> Estimate:
    """Cohen's d of two sets of runs, with the interval of the non-central t of their test."""
    test, found = compare(ours, theirs), difference(ours, theirs)
    if found.error == 0.0:
        return Estimate(*[float(test.d)] * 3)
    tail, unit = (1.0 - confidence) / 2.0, found.error / pooled_sd(ours.values, theirs.values)
    bounds = (special.nctdtrinc(test.df, share, test.t) * unit for share in (1.0 - tail, tail))
    return Estimate(float(test.d), *map(float, bounds))


def share_estimate(count: int, total: int, confidence: float = CONFIDENCE) -> Estimate:
    """A share of so many with Wilson's interval, which is honest about a share of zero."""
    z, share = float(special.ndtri((1.0 + confidence) / 2.0)), count / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2)) * z / (1 + z**2 / total)
    return Estimate(share, max(0.0, middle - float(half)), min(1.0, middle + float(half)))


def spread_ratio(ours: Sample, theirs: Sample, *, confidence: float = CONFIDENCE) -> Estimate:
    """The standard deviation of ours over that of theirs, with Miller's jackknife interval.

    The F test takes runs to be normal, and of skewed ones promises far too much; this does not.
    Miller (1968), https://doi.org/10.1214/aoms/1177698418.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = float(np.divide(ours.values.std(ddof=1), theirs.values.std(ddof=1)))
        if min(ours.values.size, theirs.values.size) < 3:  # left out one, nothing would vary
            return Estimate(value, 0.0, np.inf)
        found = difference(
            *(Sample(_log_spreads(side.values), side.seeds) for side in (ours, theirs))
        )
        low, high = (float(np.exp(end)) for end in found.interval(confidence))
    return Estimate(value, low, high) if low <= high else Estimate(value, 0.0, np.inf)


def _log_spreads(runs: Array) -> Array:
    """What each run says of the logarithm of the standard deviation: pseudo-values, (n,)."""
    n = runs.size
    rest = np.tile(runs, (n, 1))[~np.eye(n, dtype=bool)].reshape(n, n - 1).std(axis=-1, ddof=1)
    return np.asarray(n * np.log(runs.std(ddof=1)) - (n - 1) * np.log(rest))
