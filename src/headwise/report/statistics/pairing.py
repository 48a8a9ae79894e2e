"""The one rule by which runs are set against each other: by seed within a group, then over groups.

A group is what is compared in one place, such as two methods on one task. Its runs share what
comes of the seed, so those of one seed are paired: if they go up and down together, that is no
error of their difference. Groups are summed as sets of their own (Welch and Satterthwaite). Sides
without the same seeds, all of them, are not paired.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headwise.report.statistics.aggregates import Array
from headwise.report.statistics.contrasts import Contrast, contrast
from headwise.report.statistics.rounding import without_rounding


class Sample(NamedTuple):
    """Runs of one configuration: a number of each, and its seed."""

    values: Array
    """(runs,), in the order of the seeds."""
    seeds: NDArray[np.int64]


def sample(values: ArrayLike, seeds: ArrayLike) -> Sample:
    """The runs that have a number, by seed."""
    numbers, names = np.asarray(values, dtype=np.float64), np.asarray(seeds, dtype=np.int64)
    order = np.argsort(names, kind="stable")
    order = order[np.isfinite(numbers[order])]
    return Sample(numbers[order], names[order])


Group = Sequence[tuple[float, Sample]]
"""What is compared in one place, each with its weight: 1 and -1 for a difference."""


def by_seed(groups: Iterable[Group]) -> Contrast:
    """The weighted sum of the means of all samples, those of a group paired where they share seeds.

    Args:
        groups: Samples with their weights; no sample may be in two groups.
    """
    sets: list[Array] = []
    weights: list[float] = []
    for group in groups:
        alike: dict[tuple[int, ...], list[tuple[float, Sample]]] = {}
        for weight, runs in group:
            alike.setdefault(tuple(runs.seeds.tolist()), []).append((weight, runs))
        for paired in alike.values():
            if len(paired) == 1:
                ((weight, runs),) = paired
                sets.append(runs.values)
                weights.append(weight)
            else:
                sets.append(_sums(paired))
                weights.append(1.0)
    return contrast(sets, weights)


def difference(ours: Sample, theirs: Sample) -> Contrast:
    """The difference of two means."""
    return by_seed([[(1.0, ours), (-1.0, theirs)]])


def share_seeds(*sides: Sample) -> bool:
    """Whether the runs of several sides are paired."""
    return all(np.array_equal(side.seeds, sides[0].seeds) for side in sides)


def _sums(paired: Group) -> Array:
    """The weighted sum of every seed."""
    terms = [weight * runs.values for weight, runs in paired]
    return without_rounding(np.asarray(sum(terms)), np.max(np.abs(terms), axis=0))
