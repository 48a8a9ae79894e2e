"""The claims ledger: each claim of the paper, its number, ours, and a verdict.

A claim is a sentence, the range of values for which it is true, and a function of the evidence that
measures the value. The verdict follows from the interval alone: inside the range it holds, outside
it does not, across its border more seeds are needed, unless it lies within the smallest effect of
interest: then there is no difference that matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from headwise.report.claims.measurement import Evidence, Measurement
from headwise.report.statistics import Interval, holm, p_of_alike, p_of_range, within
from headwise.report.sweep import NotMeasuredError

ENOUGH_SEEDS = 3
"""Fewer do not show how runs vary."""
LEVEL = 0.05
"""Of the two one-sided tests that find no meaningful difference: their interval is of 90 %."""
ENOUGH_STEPS = 0.3
"""The share of the paper's steps below which a run says nothing about the paper."""


class Verdict(StrEnum):
    """What the evidence says of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    ALIKE = "no meaningful difference"
    UNDECIDED = "undecided"
    MISSING = "not yet measured"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper that a store can answer."""

    key: str
    """A short name that stays."""
    group: str
    """What it is about."""
    settings: str
    """Under which settings we ask: a preset of a study, or the variant of a sweep."""
    text: str
    """The claim as a sentence."""
    published: str
    """The paper's number, in its words."""
    quantity: str
    """What is measured."""
    low: float
    """The claim is true for values from here ..."""
    high: float
    """... to here."""
    measure: Callable[[Evidence], Measurement]
    alike: float = 0.0
    """The smallest effect of interest, fixed beforehand: what is less is no difference that
    matters. 0 where the claim is about no difference."""

    @property
    def range_text(self) -> str:
        """The values for which the claim is true."""
        if math.isinf(self.low):
            return f"below {self.high:g}"
        if math.isinf(self.high):
            return f"above {self.low:g}"
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Entry:
    """A line of the ledger."""

    claim: Claim
    verdict: Verdict
    measurement: Measurement | None
    note: str
    p: float = math.nan
    """Of the test that gave the verdict, or gave none; NaN where no test was made."""
    others: tuple[float, ...] = ()
    """Of the other tests that were made for it."""
    adjusted: float = math.nan
    """p, corrected for all tests of the ledger (Holm)."""


def judge(claim: Claim, evidence: Evidence) -> Entry:
    """Measures a claim and gives the verdict."""
    try:
        found = claim.measure(evidence)
    except NotMeasuredError as missing:
        return Entry(claim, Verdict.MISSING, None, str(missing))
    if math.isnan(found.value):
        return Entry(claim, Verdict.MISSING, None, "no run has the number")
    if found.share < ENOUGH_STEPS:
        note = f"so far at {found.share:.1%} of the paper's steps"
        return Entry(claim, Verdict.MISSING, found, note)
    short = _joined(
        f"at {found.share:.0%} of the paper's steps" if found.share < 0.95 else "",
        "at unequal steps" if found.unequal else "",
        "on unlike devices" if found.unlike else "",
    )
    if found.seeds is not None and found.seeds < ENOUGH_SEEDS:
        note = _joined(short, f"needs at least {ENOUGH_SEEDS} seeds, has {found.seeds}")
        return Entry(claim, Verdict.UNDECIDED, found, note)
    if found.at is None:
        verdict = _by_range(claim, found)
        wanted = _wanted(claim, found) if verdict is Verdict.UNDECIDED else ""
        return Entry(claim, verdict, found, _joined(short, wanted))
    return _tested(claim, found, found.at, short)


def _by_range(claim: Claim, found: Measurement) -> Verdict:
    if claim.low <= found.low and found.high <= claim.high:
        return Verdict.HOLDS
    if found.high < claim.low or found.low > claim.high:
        return Verdict.FAILS
    return Verdict.UNDECIDED


def _tested(claim: Claim, found: Measurement, at: Interval, note: str) -> Entry:
    """The verdict with the p-values of the one or two tests behind it."""
    verdict, p = _by_range(claim, found), p_of_range(at, claim.low, claim.high)
    others: tuple[float, ...] = ()
    if claim.alike:
        p_alike = p_of_alike(at, claim.alike)
        others = (p_alike,)
        if within(at, claim.alike, LEVEL):
            if (claim.low, claim.high) == (-claim.alike, claim.alike):  # it is what the claim says
                verdict, p, others = Verdict.HOLDS, p_alike, ()
            elif verdict is Verdict.UNDECIDED:
                verdict, p, others = Verdict.ALIKE, p_alike, (p,)
            else:
                note = _joined(note, f"less than {claim.alike:g} apart")
    if verdict is Verdict.UNDECIDED:
        note = _joined(note, _wanted(claim, found))
    return Entry(claim, verdict, found, note, p, others)


def ledger(claims: Sequence[Claim], evidence: Evidence) -> list[Entry]:
    """Every claim with its verdict, and p corrected for all tests that were made."""
    entries = [judge(claim, evidence) for claim in claims]
    tested = [entry for entry in entries if not math.isnan(entry.p)]
    others = [p for entry in tested for p in entry.others]
    adjusted = iter(holm([*(entry.p for entry in tested), *others]).tolist())
    return [
        entry if math.isnan(entry.p) else replace(entry, adjusted=next(adjusted))
        for entry in entries
    ]


def _wanted(claim: Claim, found: Measurement) -> str:
    """How many seeds would settle it if the number stays, as intervals shrink with their root."""
    if found.seeds is None:
        return "differs between tasks"
    times = 0.0
    for border in (claim.low, claim.high):
        if found.low < border < found.high:
            # An interval need not be symmetric: what counts is its end beyond the border.
            end, away = found.high if border > found.value else found.low, border - found.value
            times = max(times, (end - found.value) / away if away else math.inf)
    if not 0.0 < times < 50.0:
        return "too close to call"
    return f"about {math.ceil(found.seeds * times**2)} seeds would settle it"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
