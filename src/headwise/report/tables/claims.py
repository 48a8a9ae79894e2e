"""The claims ledger and the list of runs as tables."""

from __future__ import annotations

from collections.abc import Sequence

from headwise.report.claims import Entry
from headwise.report.names import PRESETS
from headwise.report.store import StudyRuns
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
                None if found is None else found.seeds,
                entry.note or None,
                claim.quantity,
                claim.range_text,
            )
        )
        tags.append({"verdict": str(entry.verdict), "topic": claim.group, "key": claim.key})
    return Table(
        "claims",
        "Claims",
        "Claims ledger",
        "A claim holds if our 95 % interval lies within the values for which it is true, does not "
        "hold if it lies outside, and is undecided across the border. Runs of less than 30 % of "
        "the paper's steps, or not on all environments that a claim is about, do not count. "
        "At unequal steps: the two sides had different budgets, as in the paper.",
        (
            "claim", "settings", "verdict", "paper", "ours", "95 % interval", "seeds", "note",
            "we measure", "true for",
        ),
        tuple(rows),
        tuple(tags),
    )  # fmt: skip


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
            str(failure.error.get("type", "")),
            str(failure.error.get("message", ""))[:200],
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
                str(packages.get("torch", "")),
                str(machine.get("processor", "") if isinstance(machine, dict) else machine),
                str(made.get("device", "")),
            )
            counts[key] = counts.get(key, 0) + 1
    return Table(
        "machines",
        "Runs",
        "Where the runs were made",
        "A commit with a + had changed files.",
        ("study", "headwise", "commit", "torch", "processor", "device", "runs"),
        tuple((*key, counts[key]) for key in sorted(counts)),
    )
