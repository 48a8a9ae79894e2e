"""The claims ledger and the list of runs as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headwise.report.claims import Entry, Verdict
from headwise.report.names import PRESETS
from headwise.report.runs import StudyRuns
from headwise.report.tables.table import Table, interval_text


def claims_table(entries: Sequence[Entry]) -> Table:
    """Every claim with the paper's number, ours, and the verdict."""
    rows, tags = [], []
    for entry in entries:
        claim, found = entry.claim, entry.measurement
        rows.append(
            (
                claim.text,
                PRESETS.get(claim.settings, claim.settings) or None,
                str(entry.verdict),
                claim.published,
                None if found is None else found.value,
                None if found is None else interval_text(found.low, found.high),
                None if math.isnan(entry.adjusted) else entry.adjusted,
                None if found is None else found.seeds,
                entry.note or None,
                claim.quantity,
                claim.range_text,
                claim.alike or None,
            )
        )
        tags.append({"verdict": str(entry.verdict), "topic": claim.group, "key": claim.key})
    return Table(
        "claims",
        "Claims",
        "Claims ledger",
        "A claim holds if our 95 % interval lies within the values for which it is true, does not "
        "hold if it lies outside, and is undecided across the border; but if the 90 % interval "
        "lies within the smallest effect of interest (the last column, fixed beforehand), there is "
        f"no meaningful difference. {_corrected(entries)} Runs of less than 30 % of the paper's "
        "steps, or not of all cells that a claim is about, do not count. At unequal steps: the two "
        "sides had different budgets, as in the paper. On unlike devices: they were made on other "
        "kinds of device, with products of another precision, or by another engine.",
        (
            "claim", "settings", "verdict", "paper", "ours", "95 % interval", "p (Holm)", "seeds",
            "note", "we measure", "true for", "alike within",
        ),
        tuple(rows),
        tuple(tags),
    )  # fmt: skip


def _corrected(entries: Sequence[Entry]) -> str:
    """What is corrected for how many tests there are, and what is not."""
    tested = [entry for entry in entries if not math.isnan(entry.p)]
    tests = len(tested) + sum(len(entry.others) for entry in tested)
    decided = [entry for entry in tested if entry.verdict is not Verdict.UNDECIDED]
    firm = sum(entry.adjusted < 0.05 for entry in decided)
    return (
        "Verdicts are not corrected for how many there are: each is of its claim alone. p (Holm) "
        f"is, for all {tests} tests of this table (two where there is a smallest effect): by it "
        f"{firm} of the {len(decided)} verdicts of tests stay. Costs have the range over tasks and "
        "no test. Intervals in figures and in other tables are of one number each."
    )


def runs_table(stores: Sequence[StudyRuns]) -> Table:
    """How far each study is."""
    rows = []
    for store in stores:
        steps = sum(run.steps for run in store)
        seconds = sum(run.number("wall_s") for run in store if "wall_s" in run.result)
        rows.append(
            (
                store.name,
                store.about,
                len(store.runs),
                store.num_planned,
                len(store.failures),
                store.num_beside,
                sum(bool(run.result.get("diverged")) for run in store),
                steps,
                round(seconds, 1),
            )
        )
    return Table(
        "runs",
        "Runs",
        "Studies in this report",
        "Time is that of single runs: each one's share of the population it was trained in. Left "
        "out are runs that are in the folder and not in the study's plan, as it was before its "
        "file or its arguments changed: `headwise report --all-runs` counts them in.",
        ("study", "what it asks", "finished", "planned", "failed", "left out", "diverged",
         "environment steps", "seconds"),
        tuple(rows),
    )  # fmt: skip


def failures_table(stores: Sequence[StudyRuns]) -> Table | None:
    """The runs that raised, if any."""
    rows = [
        (
            store.name,
            failure.id,
            failure.task,
            str(failure.config.get("algorithm", "")),
            str(failure.config.get("factorization", "")),
            failure.config.get("seed"),
            str((failure.error or {}).get("type", "")),
            str((failure.error or {}).get("message", ""))[:200],
        )
        for store in stores
        for failure in store.failures
    ]
    if not rows:
        return None
    return Table(
        "failures",
        "Runs",
        "Runs that failed",
        "`headwise study run ... --retry-failed` tries them again.",
        ("study", "run", "environment", "algorithm", "factorization", "seed", "error", "message"),
        tuple(rows),
    )


def machines_table(stores: Sequence[StudyRuns]) -> Table:
    """Where the runs were made."""
    counts: dict[tuple[str, ...], int] = {}
    for store in stores:
        for run in store:
            made = run.fingerprint
            machine = made.get("machine") or {}
            packages = made.get("packages") or {}
            key = (
                store.name,
                str(made.get("headwise", "")),
                str(made.get("commit") or ""),
                str(packages.get("torch", "") if isinstance(packages, dict) else packages),
                str(machine.get("processor", "") if isinstance(machine, dict) else machine),
                str(made.get("device", "")),
                run.matmul_precision,
                str(run.engine),
            )
            counts[key] = counts.get(key, 0) + 1
    return Table(
        "machines",
        "Runs",
        "Where the runs were made",
        "A commit with a + had changed files. Matmul precision: that of matrix products, which "
        "rounds results; of older runs it is not known. Engine: which learning core trained "
        "them. Runs of other kinds of device, products or engines are never one cell; where they "
        "are compared, the sentence or the note says so.",
        (
            "study", "headwise", "commit", "torch", "processor", "device", "matmul precision",
            "engine", "runs",
        ),
        tuple((*key, counts[key]) for key in sorted(counts)),
    )  # fmt: skip
