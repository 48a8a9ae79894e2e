"""Intervals from the stratified bootstrap: runs are drawn again within each task, tasks are kept.

All samples are drawn at once, from a generator that the caller gives: the same generator state
gives the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headwise.averages import CONFIDENCE, SAMPLES, student_interval
from headwise.errors import ConfigError
from headwise.report.statistics.aggregates import Array, Statistic, strata_of


class Estimate(NamedTuple):
    """A number with its interval; NaN at both ends where there is none."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.low):
            return f"{self.value:.4g} (no interval)"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def estimate(
    scores: ArrayLike | Sequence[ArrayLike],
    statistic: Statistic,
    rng: np.random.Generator,
    *,
    samples: int = SAMPLES,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """A statistic of scores (see `aggregates`) with `headwise.averages.student_interval`."""
    strata, share = strata_of(scores), _share(confidence)
    ends = student_interval(strata, statistic, rng, samples=samples, confidence=share)
    return Estimate(float(statistic(strata)), *ends)


def draw_counts(num_runs: int, rng: np.random.Generator, samples: int = SAMPLES) -> Array:
    """How often each run is drawn in each sample, (samples, runs)."""
    shares = np.full(num_runs, 1.0 / num_runs)
    return rng.multinomial(num_runs, shares, size=samples).astype(np.float64)


def interval(drawn: Array, confidence: float = CONFIDENCE) -> tuple[Array, Array]:
    """The middle `confidence` of bootstrap values, over the first axis."""
    tail = (1.0 - _share(confidence)) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
    return np.asarray(low), np.asarray(high)


def _share(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise ConfigError("confidence is a share", got=confidence, allowed="between 0 and 1")
    return confidence
