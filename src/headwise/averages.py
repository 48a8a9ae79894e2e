"""The interquartile mean and intervals for few runs, as evaluations and reports both have them.

Without torch and without SciPy: an agent must be able to say how sure its score is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SAMPLES = 2000
"""Bootstrap samples of an interval."""
CONFIDENCE = 0.95


def interquartile_mean(values: Array) -> Array:
    """The mean over the last axis of what is left without the lowest and highest quarter."""
    ordered = np.sort(values, axis=-1)
    number = ordered.shape[-1]
    cut = number // 4
    middle: Array = ordered[..., cut : number - cut].mean(axis=-1)
    return middle


def iqm_interval(runs: Array, rng: np.random.Generator) -> tuple[float, float]:
    """Student's 95 % interval of the interquartile mean of runs, (n,); NaN for a single one.

    It has the standard error that bootstrap samples show. Percentiles of the samples are too
    narrow: the IQM of three runs would lie in them in 73 % of cases and not in 95 %.
    """
    if runs.size < 2:
        return math.nan, math.nan
    value = float(interquartile_mean(runs))
    error = bootstrap_error([runs], lambda drawn: interquartile_mean(drawn[0]), rng)
    reach = student_quantile(runs.size - 1) * error
    return value - reach, value + reach


def bootstrap_error(
    strata: Sequence[Array],
    statistic: Callable[[Sequence[Array]], Array],
    rng: np.random.Generator,
    samples: int = SAMPLES,
) -> float:
    """The standard error of a statistic, from bootstrap samples.

    Args:
        strata: An array of two or more runs for each task; runs are drawn again within their own.
        statistic: A number of strata whose runs are on the last axis, for any axes before it.
        rng: Where chance comes from: the same state gives the same error.
        samples: How many are drawn.
    """
    return float(np.std(statistic(_unshrunk(strata, rng, samples)), ddof=1))


def student_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """How many standard errors from zero Student's t stays with this probability.

    With theta = atan(t / sqrt(freedom)) the probability is a finite sum of powers of its cosine
    (Abramowitz and Stegun, 26.7.3 and 26.7.4), which rises with theta and is halved down to it.
    """
    odd = freedom % 2
    steps = np.arange(2 + odd, freedom - 1, 2, dtype=np.float64)
    powers = np.arange(odd, freedom - 1, 2)  # none for a freedom of 1
    weights = np.cumprod([1.0, *(steps - 1.0) / steps])[: powers.size]

    def probability(theta: float) -> float:
        terms = weights * math.cos(theta) ** powers
        inside = math.sin(theta) * float(terms.sum())
        return (theta + inside) * 2.0 / math.pi if odd else inside

    low, high = 0.0, math.pi / 2.0
    while low < (middle := (low + high) / 2.0) < high:
        low, high = (middle, high) if probability(middle) < confidence else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _unshrunk(strata: Sequence[Array], rng: np.random.Generator, samples: int) -> list[Array]:
    """Strata of (samples, runs), as far apart as the runs of a population are.

    Drawn from n runs, samples spread by (n - 1) / n less than what the runs were drawn from.
    """
    drawn = []
    for part in strata:
        middle, widen = part.mean(), np.sqrt(part.size / (part.size - 1))
        again = part[rng.integers(part.size, size=(samples, part.size))]
        drawn.append(middle + widen * (again - middle))
    return drawn
