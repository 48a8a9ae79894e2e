"""What we measured for a claim: a number, its interval, and how much it rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headwise.report.decoupler import Decoupler, Kind
from headwise.report.names import generator_for
from headwise.report.statistics import welch
from headwise.report.statistics.aggregates import Array
from headwise.report.statistics.bootstrap import SAMPLES, interval
from headwise.report.store import RunRecord
from headwise.report.sweep import Draws, NotMeasuredError, Sweep, share_of_budget


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
    only: str = ""
    """Which part of what the claim is about was measured, where it was not all of it."""


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


def of_samples(values: Array, share: float = 1.0) -> Measurement:
    """A mean over seeds with Student's interval."""
    if len(values) < 2:
        return Measurement(float(values.mean()), -np.inf, np.inf, len(values), share)
    zeros = np.zeros(2)
    # Against a side that does not vary, Welch's interval is Student's.
    found = welch(values, zeros)
    return Measurement(
        float(values.mean()), float(found.low), float(found.high), len(values), share
    )


def of_difference(ours: Array, theirs: Array, share: float = 1.0) -> Measurement:
    """A difference of means over seeds with Welch's interval."""
    seeds = min(len(ours), len(theirs))
    if seeds < 2:
        value = float(ours.mean() - theirs.mean())
        return Measurement(value, -np.inf, np.inf, seeds, share)
    found = welch(ours, theirs)
    return Measurement(float(found.difference), float(found.low), float(found.high), seeds, share)


def of_statistic(
    ours: Array, theirs: Array, statistic: Callable[[Array, Array], Array], name: str, share: float
) -> Measurement:
    """Any statistic of two sets of seeds (..., n), with a bootstrap interval."""
    rng = generator_for("claim", name)
    first, second = (
        side[rng.integers(len(side), size=(SAMPLES, len(side)))] for side in (ours, theirs)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = statistic(first, second)
    drawn = drawn[np.isfinite(drawn)]  # a sample of one run many times has no spread
    value = float(statistic(ours, theirs))
    bounds = interval(drawn) if drawn.size else (-np.inf, np.inf)
    return Measurement(value, *bounds, min(len(ours), len(theirs)), share)


def of_draws(draws: Draws, support: tuple[int, float], only: str = "") -> Measurement:
    """A number of a sweep with its bootstrap interval."""
    seeds, share = support
    return Measurement(float(draws[0]), *interval(draws[1:]), seeds, share, only)


def of_ratios(ratios: Array, share: float = 1.0) -> Measurement:
    """The typical ratio over tasks, and between what it lies."""
    return Measurement(
        float(np.exp(np.log(ratios).mean())), float(ratios.min()), float(ratios.max()), None, share
    )
