"""The claims of the paper as small declarative objects, and the ledger that judges them."""

from __future__ import annotations

from dataclasses import replace

from headwise.report.claims.cost import cost_claims
from headwise.report.claims.decoupler import decoupler_claims
from headwise.report.claims.ledger import Claim, Entry, Verdict, judge, ledger
from headwise.report.claims.measurement import Evidence, Measurement
from headwise.report.claims.sweep import is_the_papers, sweep_claims
from headwise.report.names import PRESETS
from headwise.report.published import SWEEP

__all__ = ["Claim", "Entry", "Evidence", "Measurement", "Verdict", "all_claims", "judge", "ledger"]


def all_claims(evidence: Evidence) -> list[Claim]:
    """Every claim that the evidence is about, whether or not it can answer it.

    The decoupler's are asked of the presets that were run, the sweep's of a study that has all of
    the paper's environments: of other studies the paper says nothing.
    """
    presets = {study.preset for study in evidence.decouplers}
    claims = list(decoupler_claims([preset for preset in PRESETS if preset in presets]))
    for sweep in filter(is_the_papers, evidence.sweeps):
        whole = replace(sweep, asked=SWEEP)
        claims += [*sweep_claims(whole), *cost_claims(whole)]
    return claims
