"""Differences and variances that are nothing but rounding are zero.

The mean of three times 1.1 is not that of seven times 1.1, by the last digit: without this, sides
that never vary and agree would differ by many standard errors.
"""

from __future__ import annotations

import numpy as np

from headwise.report.statistics.aggregates import Array

_ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Of the largest term, how much of a mean or a difference may be rounding."""


def without_rounding(differences: Array, terms: Array) -> Array:
    """Differences, with 0 for those that are rounding beside the size of their terms."""
    return np.where(np.abs(differences) < _ROUNDING * np.abs(terms), 0.0, differences)


def variance(runs: Array) -> Array:
    """The variance over runs, (..., n); 0 where they differ by rounding alone."""
    apart = without_rounding(runs.max(axis=-1) - runs.min(axis=-1), size(runs))
    return np.where(apart == 0.0, 0.0, runs.var(axis=-1, ddof=1))


def size(runs: Array) -> Array:
    """The largest of runs by size, (..., n)."""
    return np.asarray(np.abs(runs).max(axis=-1))
