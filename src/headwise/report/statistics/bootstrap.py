"""Intervals from the stratified bootstrap: runs are drawn again within each task, tasks are kept.

All samples are drawn at once, from a generator that the caller gives: the same generator state
gives the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from headwise.averages import CONFIDENCE, SAMPLES, bootstrap_error
from headwise.errors import ConfigError
from headwise.report.statistics.aggregates import Array, Statistic, Strata, strata_of
from headwise.report.statistics.freedom import freedom_of


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
    """A statistic of scores (see `aggregates`) with an interval that is made for few runs, too.

    It is Student's, with the standard error that bootstrap samples show. Percentiles of the samples
    are too narrow: the IQM of three runs would lie in them in 73 % of cases and not in 95 %. A task
    with a single run shows no spread, and then there is no interval.

    Tasks may spread unequally: the degrees of freedom are Welch and Satterthwaite's, by how much of
    the error is each task's.
    """
    strata = strata_of(scores)
    tail = _tail(confidence)
    value = float(statistic(strata))
    if min(part.size for part in strata) < 2:
        return Estimate(value, float("nan"), float("nan"))
    error = bootstrap_error(strata, statistic, rng, samples)
    reach = float(special.stdtrit(_freedom(strata, statistic), 1.0 - tail)) * error
    return Estimate(value, value - reach, value + reach)


def _freedom(strata: Strata, statistic: Statistic) -> float:
    """Satterthwaite's, of what each task adds to the variance when its runs are left out in turn.

    That is the jackknife, which needs no chance; of a mean it is the variance of the textbook.
    """
    variances = []
    for place, part in enumerate(strata):
        rest = np.tile(part, (part.size, 1))[~np.eye(part.size, dtype=bool)]
        without = [*(np.tile(other, (part.size, 1)) for other in strata)]
        without[place] = rest.reshape(part.size, part.size - 1)
        variances.append(np.asarray((part.size - 1) * statistic(without).var()))
    return float(freedom_of(variances, [part.size for part in strata]))


def draw_counts(num_runs: int, rng: np.random.Generator, samples: int = SAMPLES) -> Array:
    """How often each run is drawn in each sample, (samples, runs)."""
    shares = np.full(num_runs, 1.0 / num_runs)
    return rng.multinomial(num_runs, shares, size=samples).astype(np.float64)


def interval(drawn: Array, confidence: float = CONFIDENCE) -> tuple[Array, Array]:
    """The middle `confidence` of bootstrap values, over the first axis."""
    tail = _tail(confidence)
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
    return np.asarray(low), np.asarray(high)


def _tail(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise ConfigError("confidence is a share", got=confidence, allowed="between 0 and 1")
    return (1.0 - confidence) / 2.0
