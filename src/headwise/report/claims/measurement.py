"""What we measured for a claim: a number, its interval, and how much it rests on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headwise.report.decoupler import Decoupler, Kind
from headwise.report.statistics import Group, Sample, by_seed
from headwise.report.statistics.aggregates import Array
from headwise.report.store import RunRecord
from headwise.report.sweep import Finding, NotMeasuredError, Sweep, share_of_budget


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


@dataclass(frozen=True)
class Evidence:
    """All that the stores hold, sorted by what can be asked of it."""

    decouplers: tuple[Decoupler, ...]
    sweeps: tuple[Sweep, ...]

    def decoupler(self, preset: str, *kinds: Kind) -> Decoupler:
        """The decoupler study of the first of these kinds that there is."""
        for kind in kinds:
            for study in self.decouplers:
                if study.kind == kind and study.preset == preset:
                    return study
        raise NotMeasuredError("no such study of the decoupler")


def share_of(runs: list[RunRecord]) -> float:
    """The least share of the paper's steps."""
    return min(share_of_budget(run) for run in runs)


def of_sums(group: Group, share: float = 1.0) -> Measurement:
    """A weighted sum of means over seeds, those of one seed paired."""
    found = by_seed([group])
    low, high = map(float, found.interval())
    seeds = min(runs.values.size for _, runs in group)
    return Measurement(float(found.value), low, high, seeds, share)


def of_sample(runs: Sample, share: float = 1.0) -> Measurement:
    """A mean over seeds with Student's interval."""
    return of_sums([(1.0, runs)], share)


def of_difference(ours: Sample, theirs: Sample, share: float = 1.0) -> Measurement:
    """A difference of means over seeds."""
    return of_sums([(1.0, ours), (-1.0, theirs)], share)


def of_finding(finding: Finding, support: tuple[int, float]) -> Measurement:
    """A number of a sweep."""
    seeds, share = support
    return Measurement(*finding.found, seeds, share, finding.unequal)


def of_ratios(ratios: Array, share: float = 1.0) -> Measurement:
    """The typical ratio over tasks, and between what it lies."""
    return Measurement(
        float(np.exp(np.log(ratios).mean())), float(ratios.min()), float(ratios.max()), None, share
    )
