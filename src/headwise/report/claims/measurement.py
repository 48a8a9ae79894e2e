"""What we measured for a claim: a number, its interval, and how much it rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from headwise.averages import CONFIDENCE
from headwise.report.statistics import Estimate, Group, Interval, Sample, by_seed
from headwise.report.statistics.aggregates import Array
from headwise.report.sweep import Finding, Sweep, share_of_budget
from headwise.study.records import Record


@dataclass(frozen=True)
class Measurement:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float
    seeds: int | None
    """The fewest seeds behind it; None where it is not a matter of seeds."""
    share: float = 1.0
    """The least share of the paper's environment steps that its runs had."""
    unequal: bool = False
    """Whether it sets runs against each other that had unequal steps."""
    unlike: bool = False
    """Whether it sets runs against each other of other devices, products or engines."""
    at: Interval | None = field(default=None, compare=False)
    """The interval at any confidence; None where there is but the one."""


@dataclass(frozen=True)
class Evidence:
    """All that the stores hold, sorted by what can be asked of it."""

    special: tuple[object, ...]
    """Studies of kinds of their own, as the extension that took each knows it."""
    sweeps: tuple[Sweep, ...]


def share_of(runs: list[Record]) -> float:
    """The least share of the paper's steps."""
    return min(share_of_budget(run) for run in runs)


def of_sums(group: Group, share: float = 1.0) -> Measurement:
    """A weighted sum of means over seeds, those of one seed paired."""
    seeds = min(runs.values.size for _, runs in group)
    return of_estimates(by_seed([group]).estimate, seeds, share)


def of_estimates(
    at: Callable[[float], Estimate],
    seeds: int,
    share: float = 1.0,
    unequal: bool = False,
    unlike: bool = False,
) -> Measurement:
    """A number whose interval is known at any confidence."""
    return Measurement(*at(CONFIDENCE), seeds, share, unequal, unlike, lambda c: at(c)[1:])


def of_sample(runs: Sample, share: float = 1.0) -> Measurement:
    """A mean over seeds with Student's interval."""
    return of_sums([(1.0, runs)], share)


def of_difference(ours: Sample, theirs: Sample, share: float = 1.0) -> Measurement:
    """A difference of means over seeds."""
    return of_sums([(1.0, ours), (-1.0, theirs)], share)


def of_finding(finding: Finding, support: tuple[int, float]) -> Measurement:
    """A number of a sweep."""
    return of_estimates(finding.at, *support, finding.unequal, finding.unlike)


def of_ratios(ratios: Array, share: float = 1.0) -> Measurement:
    """The typical ratio over tasks, and between what it lies."""
    return Measurement(
        float(np.exp(np.log(ratios).mean())), float(ratios.min()), float(ratios.max()), None, share
    )
