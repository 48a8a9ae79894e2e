"""The runs that a report leaves out because they cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwise.report.runs import StudyRuns
from headwise.report.tables.table import Table


def damaged_table(stores: Sequence[StudyRuns]) -> Iterator[Table]:
    """Those runs and what is wrong with each, if there are any."""
    rows = [(store.name, run.id, run.why) for store in stores for run in store.damaged]
    if rows:
        yield Table(
            "damaged",
            "Runs",
            "Runs that cannot be read",
            "They count nowhere in this report. Delete their folders and run the study again: "
            "finished runs are not repeated.",
            ("study", "run", "what is wrong"),
            tuple(rows),
        )
