"""Weighted sums of means with right intervals, and the least, the largest and the widest of them.

A mean over tasks, a difference of two methods, a difference of differences: all are sums of the
means of sets of runs, each set with a spread of its own. With few runs in a set the percentile
bootstrap is too narrow (of five runs each, 0.87 to 0.92 where 0.95 is promised), so intervals are
Student's, with the degrees of freedom of Welch and Satterthwaite. What is picked out of several by
its size, such as the best, was picked by chance in part: the bound that this flatters is taken at a
level divided by how many there were to pick from (Bonferroni), the other one needs no correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from headwise.averages import CONFIDENCE
from headwise.report.statistics.aggregates import Array
from headwise.report.statistics.bootstrap import Estimate
from headwise.report.statistics.freedom import freedom_of
from headwise.report.statistics.rounding import size, variance, without_rounding


class Contrast(NamedTuple):
    """A weighted sum of means; batch axes are kept."""

    value: Array
    error: Array
    """Its standard error; infinite where a set has a single run, whose spread is unknown."""
    df: Array
    """Welch and Satterthwaite's degrees of freedom."""

    @property
    def t(self) -> Array:
        """How many standard errors from zero; 0 where nothing varies and nothing differs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.value == 0.0, 0.0, np.divide(self.value, self.error))

    @property
    def p(self) -> Array:
        """Two-sided, of the sum being zero."""
        return np.asarray(2.0 * special.stdtr(self.df, -np.abs(self.t)))

    def __neg__(self) -> Contrast:
        return self._replace(value=-self.value)

    def bound(self, share: float) -> Array:
        """Where the truth lies below with this probability."""
        return np.asarray(self.value + special.stdtrit(self.df, share) * self.error)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[Array, Array]:
        """Where the truth lies with this probability."""
        tail = (1.0 - confidence) / 2.0
        return self.bound(tail), self.bound(1.0 - tail)

    def estimate(self, confidence: float = CONFIDENCE) -> Estimate:
        """The sum with its interval, where it is a single number."""
        return Estimate(float(self.value), *map(float, self.interval(confidence)))


def contrast(parts: Sequence[ArrayLike], weights: Sequence[float] | None = None) -> Contrast:
    """The weighted sum of the means of sets of runs, (..., n) each; their mean without weights."""
    sets = [np.asarray(part, dtype=np.float64) for part in parts]
    shares = [1.0 / len(sets)] * len(sets) if weights is None else list(weights)
    pairs = list(zip(shares, sets, strict=True))
    value = without_rounding(
        np.asarray(sum(w * part.mean(axis=-1) for w, part in pairs)),
        np.asarray(sum(abs(w) * size(part) for w, part in pairs)),
    )
    sizes = [part.shape[-1] for part in sets]
    if min(sizes) < 2:
        return Contrast(value, np.full(value.shape, np.inf), np.ones(value.shape))
    variances = [
        np.asarray(w**2 * variance(part) / n) for (w, part), n in zip(pairs, sizes, strict=True)
    ]
    error = np.asarray(np.sqrt(sum(variances)))
    return Contrast(value, error, freedom_of(variances, sizes))


def least(contrasts: Sequence[Contrast], confidence: float = CONFIDENCE) -> Estimate:
    """The smallest of several: above zero means that every one of them is."""
    tail = (1.0 - confidence) / 2.0
    return Estimate(
        min(float(c.value) for c in contrasts),
        # Whichever is truly the smallest, its own bound is among these; but any of them may have
        # come out too low.
        min(float(c.bound(tail)) for c in contrasts),
        min(float(c.bound(1.0 - tail / len(contrasts))) for c in contrasts),
    )


def largest(contrasts: Sequence[Contrast], confidence: float = CONFIDENCE) -> Estimate:
    """The largest of several."""
    value, low, high = least([-c for c in contrasts], confidence)
    return Estimate(-value, -high, -low)


def widest(differences: Sequence[Contrast], confidence: float = CONFIDENCE) -> Estimate:
    """The distance between the best and the worst of several, by all differences of two of them."""
    found = largest([*differences, *(-c for c in differences)], confidence)
    return found._replace(low=max(found.low, 0.0))


def quotient(
    above: Sequence[Contrast], below: Sequence[Contrast], confidence: float = CONFIDENCE
) -> Estimate:
    """How many times as wide: two distances as in `widest`, each with half of the error."""
    half = (1.0 + confidence) / 2.0
    first, second = widest(above, half), widest(below, half)

    def ratio(one: float, other: float) -> float:
        return one / other if other > 0.0 else np.inf

    return Estimate(
        ratio(first.value, second.value),
        ratio(first.low, second.high) if first.low > 0.0 else 0.0,
        ratio(first.high, second.low),
    )
