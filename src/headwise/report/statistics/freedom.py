"""Degrees of freedom of a sum of means whose sets of runs spread unequally."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwise.report.statistics.aggregates import Array


def freedom_of(variances: Sequence[Array], sizes: Sequence[int]) -> Array:
    """Welch and Satterthwaite's: near those of one set where it alone makes up the error.

    Args:
        variances: What each set adds to the variance of the sum, (...) each.
        sizes: How many runs each set has, at least two.
    """
    total = np.asarray(sum(variances))
    squares = np.asarray(sum(v**2 / (n - 1) for v, n in zip(variances, sizes, strict=True)))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(squares > 0, total**2 / squares, sum(n - 1 for n in sizes))
