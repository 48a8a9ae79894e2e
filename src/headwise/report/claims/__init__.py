"""Claims as small declarative objects, and the ledger that judges them."""

from __future__ import annotations

from headwise.report.claims.ledger import Claim, Entry, Verdict, judge, ledger
from headwise.report.claims.measurement import Evidence, Measurement
from headwise.report.registry import extensions

__all__ = ["Claim", "Entry", "Evidence", "Measurement", "Verdict", "all_claims", "judge", "ledger"]


def all_claims(evidence: Evidence) -> list[Claim]:
    """Every published claim that the evidence is about, whether or not it can answer it."""
    return [claim for extension in extensions() for claim in extension.claims(evidence)]
