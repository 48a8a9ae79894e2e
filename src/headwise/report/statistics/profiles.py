"""Performance profiles: the share of runs that score more than a threshold, for every threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headwise.averages import CONFIDENCE, SAMPLES
from headwise.report.statistics.aggregates import Array, strata_of
from headwise.report.statistics.bootstrap import draw_counts, interval


class Profile(NamedTuple):
    """The share of runs above each threshold, with a band, all (thresholds,).

    The band is NaN where a task has a single run.
    """

    thresholds: Array
    share: Array
    low: Array
    high: Array


def performance_profile(
    scores: ArrayLike | Sequence[ArrayLike],
    thresholds: ArrayLike,
    rng: np.random.Generator,
    *,
    samples: int = SAMPLES,
    confidence: float = CONFIDENCE,
) -> Profile:
    """The profile of scores (see `aggregates`); every task counts alike."""
    strata = strata_of(scores)
    levels = np.asarray(thresholds, dtype=np.float64)
    share = np.zeros(levels.shape)
    drawn = np.zeros((samples, levels.size))
    for part in strata:
        above = (part[:, None] > levels).astype(np.float64)
        share += above.mean(axis=0) / len(strata)
        drawn += draw_counts(part.size, rng, samples) @ above / (part.size * len(strata))
    if min(part.size for part in strata) < 2:
        return Profile(levels, share, *np.full((2, levels.size), np.nan))
    return Profile(levels, share, *interval(drawn, confidence))
