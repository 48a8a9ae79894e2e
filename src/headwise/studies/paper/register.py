"""What the published study adds to reports: its claims, its own figures and tables, its budgets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headwise.report.claims.ledger import Claim
from headwise.report.claims.measurement import Evidence
from headwise.report.figures.figure import Figure
from headwise.report.names import PRESETS
from headwise.report.registry import Extension, extend
from headwise.report.runs import StudyRuns
from headwise.report.tables.table import Table
from headwise.studies.paper.claims_cost import cost_claims
from headwise.studies.paper.claims_decoupler import decoupler_claims
from headwise.studies.paper.claims_sweep import is_the_papers, sweep_claims
from headwise.studies.paper.claims_theory import theory_claims
from headwise.studies.paper.decoupler_runs import ENV, Decoupler, decouplers, decouplers_of
from headwise.studies.paper.figures import SECTION, decoupler_figures
from headwise.studies.paper.published import SWEEP, budget
from headwise.studies.paper.tables import decoupler_tables


def claims(evidence: Evidence) -> Iterator[Claim]:
    """Every claim of the paper's that the evidence is about.

    The decoupler's are asked of the presets that were run, the sweep's of a study that has all of
    the paper's environments: of other studies the paper says nothing. Those about theory need no
    runs, and come with either.
    """
    presets = {study.preset for study in decouplers(evidence)}
    yield from decoupler_claims([preset for preset in PRESETS if preset in presets])
    sweeps = list(filter(is_the_papers, evidence.sweeps))
    for sweep in sweeps:
        whole = replace(sweep, asked=SWEEP)
        yield from (*sweep_claims(whole), *cost_claims(whole))
    if presets or sweeps:
        yield from theory_claims()


def takes(store: StudyRuns) -> bool:
    """Whether a study is of the decoupler alone."""
    return all(run.env == ENV for run in store)


def read(store: StudyRuns) -> list[Decoupler]:
    """Such a study, by preset."""
    return decouplers_of(store.name, store.runs, store.failed)


def figures(evidence: Evidence) -> Iterator[Figure]:
    """Those of the decoupler."""
    for study in decouplers(evidence):
        yield from decoupler_figures(study)


def tables(evidence: Evidence) -> Iterator[Table]:
    """Those of the decoupler."""
    for study in decouplers(evidence):
        yield from decoupler_tables(study)


extend(
    "paper",
    Extension(
        claims,
        takes,
        read,
        figures,
        tables,
        budget,
        {SECTION: "Where the right credit of every head is known."},
    ),
)
