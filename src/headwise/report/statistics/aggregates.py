"""One number for the scores of many runs on several tasks: IQM, mean, median, optimality gap.

Scores are strata: one array of runs for each task, runs on the last axis, tasks may have unequal
numbers of runs. Axes before the last are batch axes (bootstrap samples), so that a statistic of
thousands of samples is one call. The definitions are those of Agarwal et al. (2021),
https://arxiv.org/abs/2108.13264.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwise.averages import interquartile_mean
from headwise.errors import ConfigError

Array: TypeAlias = NDArray[np.float64]
Strata: TypeAlias = Sequence[Array]
Statistic: TypeAlias = Callable[[Strata], Array]


def strata_of(scores: ArrayLike | Sequence[ArrayLike]) -> list[Array]:
    """Scores as strata: from a list of tasks, a matrix (tasks, runs), or the runs of one task."""
    parts: list[Any] = list(scores) if not np.isscalar(scores) else [scores]  # type: ignore[arg-type]
    if parts and all(np.ndim(part) == 0 for part in parts):
        parts = [parts]
    strata = [np.asarray(part, dtype=np.float64) for part in parts]
    if not strata or any(part.ndim != 1 or part.size == 0 for part in strata):
        raise ConfigError(
            "scores are one array of runs for each task, none of them empty",
            got=[part.shape for part in strata],
            allowed="(runs,), (tasks, runs) or a list of (runs,)",
        )
    if not all(np.isfinite(part).all() for part in strata):
        raise ConfigError(
            "scores must be finite",
            got="NaN or infinity",
            fix="Leave out runs without a score, and say how many there were.",
        )
    return strata


def iqm(strata: Strata) -> Array:
    """The interquartile mean: the mean of the middle half of all runs of all tasks."""
    return interquartile_mean(np.concatenate(strata, axis=-1))


def mean(strata: Strata) -> Array:
    """The mean over tasks of the mean over runs."""
    return np.asarray(_task_means(strata).mean(axis=-1))


def median(strata: Strata) -> Array:
    """The median over tasks of the mean over runs; over runs where there is but one task."""
    if len(strata) == 1:
        return np.asarray(np.median(strata[0], axis=-1))
    return np.asarray(np.median(_task_means(strata), axis=-1))


def optimality_gap(strata: Strata, target: float = 1.0) -> Array:
    """How far runs fall short of a target score on average; what is above it does not count."""
    return mean([np.maximum(target - part, 0.0) for part in strata])


STATISTICS: dict[str, Statistic] = {"iqm": iqm, "mean": mean, "median": median}
"""The statistics by name."""


def _task_means(strata: Strata) -> Array:
    return np.stack([part.mean(axis=-1) for part in strata], axis=-1)
