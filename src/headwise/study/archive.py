"""A study as one small file, to keep beside a paper, to send, or to go on from elsewhere.

It holds what each run is, where it was made, how it ended and its learning curve: what a report of
a sweep is made of. Episodes, metrics and checkpoints stay behind, and with them all but a few
hundred bytes of a run. Restored, its runs count as finished, and the study goes on with the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from headwise.added import canonical_json
from headwise.study.archive_file import PARTS, no_archive, read_archive_file, write_archive_file
from headwise.study.run import Run
from headwise.study.store import Store


def write_archive(
    store: Store, path: Path, on_run: Callable[[int, int], None] | None = None
) -> None:
    """Writes a study as one file; what is there is replaced once the new one is whole.

    Runs that an earlier plan of the study left in the folder come along, and stay beside the plan.

    Args:
        store: The study.
        path: The file.
        on_run: Told how many runs of how many were looked at.
    """
    beside = store.beside_the_plan()
    runs = [*store.plan(), *beside]
    rows = []
    for place, run in enumerate(runs):
        if on_run is not None:
            on_run(place, len(runs))
        rows.append({"config": canonical_json(run.to_json()), **_outcome(store, run)})
    write_archive_file(path, store.study(), [run.id for run in beside], rows)


def read_archive(path: Path) -> Store:
    """The study in a file, of which all can be read; raises if not."""
    store = Store(path)
    if store.archive is None:
        read_archive_file(path)  # which says why
    for record in store.records(all_runs=True):
        if record.why:
            raise no_archive(path, record.why)
    return store


def restore(archive: Store, store: Store, on_run: Callable[[int, int], None] | None = None) -> int:
    """Puts an archived study's runs into a folder; returns how many of them were not there before.

    The folder may hold runs of the same study already: the plans are joined, and what is finished
    stays as it is.

    Args:
        archive: The study.
        store: The folder.
        on_run: Told how many runs of how many were put in.
    """
    store.begin(archive.study(), join=True)
    records, new = list(archive.records(all_runs=True)), 0
    for place, record in enumerate(records):
        if on_run is not None:
            on_run(place, len(records))
        if record.error is None or not store.is_failed(record.id):
            names = sorted(set(record.archived or ()) - {"config.json"})
            new += store.put_files(record.run(), {name: record.json(name) for name in names})
    return new


def _outcome(store: Store, run: Run) -> dict[str, Any]:
    """How a run ended, as a part of its row; nothing of one that did not."""
    row: dict[str, Any] = dict.fromkeys((*PARTS, "curve"))
    if store.is_finished(run.id):
        row["result"] = canonical_json(store.result(run.id))
        curve = store.curve(run.id)
        row["curve"] = None if np.isnan(curve).any() else curve.astype(np.float32)
    elif store.is_failed(run.id):
        row["error"] = canonical_json(store.error(run.id))
    else:
        return row
    row["fingerprint"] = canonical_json(store.fingerprint(run.id))
    return row
