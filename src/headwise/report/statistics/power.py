"""How many seeds would settle a comparison: the power of the tests that decide.

Power is the probability that a two-sided test at level alpha shows a true difference as
significant. A test of many at once, as in Holm's table, is one at alpha over their number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from headwise.report.statistics.aggregates import Array
from headwise.report.statistics.contrasts import Contrast

MOST_SEEDS = 100_000
"""Beyond this a difference is called too small to settle."""
_MANY = (np.arange(2000) + 0.5) / 2000
"""Where the distribution of one spread is looked at ..."""
_SOME = (np.arange(60) + 0.5) / 60
"""... and of each of two."""


def power_of_welch(
    num_seeds: float, difference: float, sd_ours: float, sd_theirs: float, alpha: float = 0.05
) -> float:
    """The probability that n seeds a side show a true difference, by Welch's test.

    The test counts degrees of freedom from the spreads that it sees, and with few seeds these are
    anything: so the mean goes over what both may be.
    """
    if sd_ours == sd_theirs == 0.0:
        return 1.0 if difference else alpha
    df = num_seeds - 1.0
    ours, theirs = (sd**2 / num_seeds * _spreads(df, _SOME) for sd in (sd_ours, sd_theirs))
    squares = ours[:, None] ** 2 + theirs**2
    seen = ours[:, None] + theirs
    error = np.sqrt((sd_ours**2 + sd_theirs**2) / num_seeds)
    return _power(difference / error, np.sqrt(seen) / error, df * seen**2 / squares, alpha)


def power_of_paired(
    num_seeds: float, difference: float, sd: float, alpha: float = 0.05, sets: float = 1.0
) -> float:
    """The power of the paired test, of n pairs whose differences spread by `sd`.

    Of a sum over several tasks, `sets` is how many of them the error comes from: each of them has
    n - 1 degrees of freedom.
    """
    if sd == 0.0:
        return 1.0 if difference else alpha
    df = sets * (num_seeds - 1.0)
    shift = difference * np.sqrt(num_seeds) / sd
    return _power(shift, np.sqrt(_spreads(df, _MANY)), df, alpha)


def seeds_needed(
    difference: float,
    sd_ours: float,
    sd_theirs: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
) -> int | None:
    """The fewest seeds a side with which Welch's test has a power, None if above `MOST_SEEDS`.

    Judged by a difference and spreads that were themselves measured, it is a guide, not a promise.
    """
    return _fewest(lambda n: power_of_welch(n, difference, sd_ours, sd_theirs, alpha) >= power)


def pairs_needed(
    difference: float, sd: float, *, power: float = 0.8, alpha: float = 0.05, sets: float = 1.0
) -> int | None:
    """How many seeds, which both sides have, the paired test needs."""
    return _fewest(lambda n: power_of_paired(n, difference, sd, alpha, sets) >= power)


def seeds_to_settle(
    found: Contrast, num_seeds: int, *, power: float = 0.8, alpha: float = 0.05
) -> int | None:
    """How many seeds would settle what n of them measured, by the same test."""
    sd, sets = float(found.error) * np.sqrt(num_seeds), float(found.df) / (num_seeds - 1.0)
    return pairs_needed(float(found.value), sd, power=power, alpha=alpha, sets=sets)


def _spreads(df: float, shares: Array) -> Array:
    """Quantiles of a sample's variance over the true one."""
    return np.asarray(2.0 * special.gammaincinv(df / 2.0, shares) / df)


def _power(shift: float, seen: Array, df: ArrayLike, alpha: float) -> float:
    """The mean over what error may be seen, as a share of the true one.

    A mean over the denominator of the non-central t: scipy's own fails at large differences.
    """
    bars = special.stdtrit(df, 1.0 - alpha / 2.0) * seen
    # The other tail, significant in the wrong direction, is part of a two-sided test's power.
    return float(np.mean(special.ndtr(shift - bars) + special.ndtr(-shift - bars)))


def _fewest(enough: Callable[[int], bool]) -> int | None:
    if not enough(MOST_SEEDS):
        return None
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
