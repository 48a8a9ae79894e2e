"""The probability that a run of one method beats a run of another on the same task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from headwise.averages import CONFIDENCE, SAMPLES
from headwise.errors import ConfigError
from headwise.report.statistics.aggregates import strata_of
from headwise.report.statistics.bootstrap import Estimate, draw_counts, interval


def probability_of_improvement(
    ours: ArrayLike | Sequence[ArrayLike],
    theirs: ArrayLike | Sequence[ArrayLike],
    rng: np.random.Generator,
    *,
    samples: int = SAMPLES,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """P(ours > theirs), ties counted half, averaged over tasks (the Mann-Whitney statistic).

    The interval has percentiles of bootstrap samples; with a single run somewhere there is none.
    """
    strata, others = strata_of(ours), strata_of(theirs)
    if len(strata) != len(others):
        raise ConfigError(
            "both methods need scores on the same tasks",
            got=f"{len(strata)} and {len(others)} tasks",
        )
    value, drawn = 0.0, np.zeros(samples)
    for mine, other in zip(strata, others, strict=True):
        wins = (mine[:, None] > other) + 0.5 * (mine[:, None] == other)
        value += float(wins.mean()) / len(strata)
        # A sample's share of wins is a product of how often each run was drawn.
        weighted = draw_counts(mine.size, rng, samples) @ wins
        drawn += (weighted * draw_counts(other.size, rng, samples)).sum(-1) / (
            wins.size * len(strata)
        )
    if min(part.size for part in (*strata, *others)) < 2:
        return Estimate(value, float("nan"), float("nan"))
    return Estimate(value, *map(float, interval(drawn, confidence)))
