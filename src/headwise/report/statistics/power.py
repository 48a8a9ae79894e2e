"""How many seeds would settle a comparison: the power of Welch's test.

Two sides of n runs each differ by `difference`; the test is two-sided at level alpha. Power is the
probability that it comes out significant.
"""

from __future__ import annotations

import numpy as np
from scipy import special

MOST_SEEDS = 100_000
"""Beyond this a difference is called too small to settle."""
_SHARES = (np.arange(2000) + 0.5) / 2000
"""Where the distribution of the spread is looked at."""


def power_of_welch(
    num_seeds: float, difference: float, sd_ours: float, sd_theirs: float, alpha: float = 0.05
) -> float:
    """The probability that n seeds a side show a true difference as significant."""
    share_ours, share_theirs = sd_ours**2 / num_seeds, sd_theirs**2 / num_seeds
    error = np.sqrt(share_ours + share_theirs)
    if error == 0.0:
        return 1.0 if difference else alpha
    df = (num_seeds - 1) * error**4 / (share_ours**2 + share_theirs**2)
    reach = special.stdtrit(df, 1.0 - alpha / 2.0)
    shift = abs(difference) / error
    # The non-central t as a mean over its denominator: scipy's own fails at large differences.
    bars = reach * np.sqrt(2.0 * special.gammaincinv(df / 2.0, _SHARES) / df)
    # The other tail, significant in the wrong direction, is part of a two-sided test's power.
    return float(np.mean(special.ndtr(shift - bars) + special.ndtr(-shift - bars)))


def seeds_needed(
    difference: float,
    sd_ours: float,
    sd_theirs: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
) -> int | None:
    """The fewest seeds a side that reach a power, None if more than `MOST_SEEDS`.

    Judged by a difference and spreads that were themselves measured, it is a guide, not a promise.
    """

    def enough(num_seeds: int) -> bool:
        return power_of_welch(num_seeds, difference, sd_ours, sd_theirs, alpha) >= power

    if difference == 0.0 or not enough(MOST_SEEDS):
        return None
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
