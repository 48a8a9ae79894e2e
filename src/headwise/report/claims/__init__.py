"""The claims of the paper as small declarative objects, and the ledger that judges them."""

from __future__ import annotations

from headwise.report.claims.cost import cost_claims
from headwise.report.claims.decoupler import decoupler_claims
from headwise.report.claims.ledger import Claim, Entry, Verdict, judge, ledger
from headwise.report.claims.measurement import Evidence, Measurement
from headwise.report.claims.sweep import sweep_claims

__all__ = ["Claim", "Entry", "Evidence", "Measurement", "Verdict", "all_claims", "judge", "ledger"]


def all_claims(evidence: Evidence) -> list[Claim]:
    """Every claim that a store can answer, whether or not this one does."""
    claims = list(decoupler_claims())
    for sweep in evidence.sweeps or (None,):
        claims += [*sweep_claims(sweep), *cost_claims(sweep)]
    return claims
