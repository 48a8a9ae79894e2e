"""Several folders of one study as one store, and no two stores by one name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from headwise.report.store import StudyRuns


def pooled(stores: Iterable[StudyRuns]) -> list[StudyRuns]:
    """Stores of which no two go by the same name.

    Folders of one study, of the same name and plan (the parts of a `--shard`, say), become one; a
    run that is in several counts once. Other studies of the same name are told apart by their
    folders.
    """
    found: dict[tuple[str, frozenset[str]], StudyRuns] = {}
    for store in stores:
        key = (store.name, store.plan)
        found[key] = _joined(found[key], store) if key in found else store
    names = Counter(name for name, _ in found)
    taken: set[str] = set()
    unique = []
    for store in found.values():
        name = store.name if names[store.name] == 1 else f"{store.name} ({store.path.name})"
        number = 2
        while name in taken:
            name, number = f"{store.name} ({store.path.name} {number})", number + 1
        taken.add(name)
        runs = tuple(replace(run, study=name) for run in store.runs)
        unique.append(replace(store, name=name, runs=runs))
    return unique


def _joined(first: StudyRuns, second: StudyRuns) -> StudyRuns:
    runs = {run.id: run for run in (*second.runs, *first.runs)}
    failures = {failure.id: failure for failure in (*second.failures, *first.failures)}
    return replace(
        first,
        runs=tuple(sorted(runs.values(), key=lambda run: run.id)),
        failures=tuple(failures[name] for name in sorted(failures) if name not in runs),
        num_beside=first.num_beside + second.num_beside,
        damaged=tuple(bad for bad in (*first.damaged, *second.damaged) if bad.id not in runs),
    )
