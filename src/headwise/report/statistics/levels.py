"""How sure a decision by an interval is: the p-values of intervals that are known at any level.

What an interval decides, a test decides at one minus its confidence. Where the interval is of one
number that is Student's p; of the best of several, or of a ratio, there is no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

Interval: TypeAlias = Callable[[float], tuple[float, float]]
"""The ends of an interval, by its confidence."""
FINEST = 1e-12
"""A p-value below is said to be this: no distribution of runs is known so far out."""


def p_of_range(at: Interval, low: float, high: float) -> float:
    """Of a number lying in a range, or out of it: the least level at which the interval does."""

    def decided(level: float) -> bool:
        start, end = at(1.0 - level)
        return (low <= start and end <= high) or end < low or start > high

    return _least(decided, 1.0)


def p_of_alike(at: Interval, margin: float) -> float:
    """Of a number being less than a margin from zero: that of two one-sided tests.

    Schuirmann (1987), https://doi.org/10.1007/BF01068419: at level 0.05 the 90 % interval decides.
    """
    return _least(lambda level: within(at, margin, level), 0.5)


def within(at: Interval, margin: float, level: float) -> bool:
    """Whether two one-sided tests at a level find a number less than a margin from zero."""
    start, end = at(1.0 - 2.0 * level)
    return -margin <= start and end <= margin


def _least(decided: Callable[[float], bool], most: float) -> float:
    """The least level at which it is decided, which it is at all above; 1 if nowhere."""
    if decided(FINEST):
        return FINEST
    low, high = math.log(FINEST), math.log(most * (1.0 - 1e-9))
    if not decided(math.exp(high)):
        return 1.0
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (low, middle) if decided(math.exp(middle)) else (middle, high)
    return math.exp(high)
