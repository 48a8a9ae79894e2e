"""Scores of different tasks on one scale.

Two scales are offered. By reference scores, 0 is random play and 1 the best policy known, whatever
was run. By minimum and maximum (what the paper does), 0 and 1 are the worst and the best run on the
task, so a single lucky seed moves everybody's score.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from headwise.envs.reference import normalize
from headwise.errors import ConfigError
from headwise.report.statistics.aggregates import Array


def min_max(scores: ArrayLike, low: float | None = None, high: float | None = None) -> Array:
    """Scores with the lowest at 0 and the highest at 1, or those limits if given."""
    values = np.asarray(scores, dtype=np.float64)
    bottom = float(values.min()) if low is None else low
    top = float(values.max()) if high is None else high
    if top <= bottom:
        return np.zeros_like(values)  # all alike: none is better than the worst
    return (values - bottom) / (top - bottom)


def by_reference(scores: ArrayLike, env: str, **settings: Any) -> Array | None:
    """Scores where random play is 0 and the best known policy 1; None if it is not known."""
    try:
        return normalize(scores, env, **settings)
    except ConfigError:
        return None
