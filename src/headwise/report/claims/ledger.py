"""The claims ledger: each claim of the paper, its number, ours, and a verdict.

A claim is a sentence, the range of values for which it is true, and a function of the evidence that
measures the value. The verdict follows from the interval alone: inside the range it holds, outside
it does not, across its border more seeds are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headwise.report.claims.measurement import Evidence, Measurement
from headwise.report.sweep import NotMeasuredError

ENOUGH_SEEDS = 3
"""With fewer there is no telling how runs spread."""
ENOUGH_STEPS = 0.3
"""The share of the paper's steps below which a run says nothing about the paper."""


class Verdict(StrEnum):
    """What the evidence says of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
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
    """Under which settings we ask: a preset of the decoupler, or the variant of a sweep."""
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
    )
    if found.seeds is not None and found.seeds < ENOUGH_SEEDS:
        note = _joined(short, f"needs at least {ENOUGH_SEEDS} seeds, has {found.seeds}")
        return Entry(claim, Verdict.UNDECIDED, found, note)
    if claim.low <= found.low and found.high <= claim.high:
        return Entry(claim, Verdict.HOLDS, found, short)
    if found.high < claim.low or found.low > claim.high:
        return Entry(claim, Verdict.FAILS, found, short)
    return Entry(claim, Verdict.UNDECIDED, found, _joined(short, _wanted(claim, found)))


def ledger(claims: Sequence[Claim], evidence: Evidence) -> list[Entry]:
    """Every claim with its verdict."""
    return [judge(claim, evidence) for claim in claims]


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
