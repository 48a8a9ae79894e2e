"""Intervals from the stratified bootstrap: runs are drawn again within each task, tasks are kept.

All samples are drawn at once, from a generator that the caller gives: the same generator state
gives the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headwise.errors import ConfigError
from headwise.report.statistics.aggregates import Array, Statistic, Strata, strata_of

SAMPLES = 2000
CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A number with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def estimate(
    scores: ArrayLike | Sequence[ArrayLike],
    statistic: Statistic,
    rng: np.random.Generator,
    *,
    samples: int = SAMPLES,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """A statistic of scores (see `aggregates`) and its percentile bootstrap interval."""
    strata = strata_of(scores)
    drawn = statistic(resample(strata, rng, samples))
    return Estimate(float(statistic(strata)), *interval(drawn, confidence))


def resample(strata: Strata, rng: np.random.Generator, samples: int = SAMPLES) -> list[Array]:
    """Runs drawn again with replacement within each task: strata of (samples, runs)."""
    return [part[rng.integers(part.size, size=(samples, part.size))] for part in strata]


def draw_counts(num_runs: int, rng: np.random.Generator, samples: int = SAMPLES) -> Array:
    """How often each run is drawn in each sample, (samples, runs)."""
    shares = np.full(num_runs, 1.0 / num_runs)
    return rng.multinomial(num_runs, shares, size=samples).astype(np.float64)


def interval(drawn: Array, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The middle `confidence` of bootstrap values."""
    if not 0.0 < confidence < 1.0:
        raise ConfigError("confidence is a share", got=confidence, allowed="between 0 and 1")
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    return float(low), float(high)
