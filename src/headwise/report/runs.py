"""The runs that a report is made of: of a study's folder or archive, or of several of one study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwise.errors import ConfigError
from headwise.study.records import Record
from headwise.study.store import Store


@dataclass(frozen=True)
class StudyRuns:
    """What a study's folder or archive holds."""

    path: Path
    name: str
    about: str
    runs: tuple[Record, ...]
    """Finished ones, in the order of the plan where they are of one folder."""
    failures: tuple[Record, ...]
    plan: frozenset[str]
    """The ids of all runs that the study asks for now."""
    num_beside: int = 0
    """Runs in the folder that are not in the plan and were left out."""
    damaged: tuple[Record, ...] = ()
    """Runs that were left out because they cannot be read."""

    @property
    def num_planned(self) -> int:
        """How many runs are, or are to be, looked at."""
        return len(self.plan.union(run.id for run in self.runs))

    @property
    def failed(self) -> list[Record]:
        """The runs that raised, of which it was known what they were."""
        return [failure for failure in self.failures if failure.config]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.runs)

    @property
    def table(self) -> pa.Table:
        """A row for each finished run: what it was and its final numbers."""
        columns = ("id", "study", "task", "view", "algorithm", "factorization", "variant", "seed")
        rows: dict[str, list[Any]] = {
            name: [getattr(run, name) for run in self.runs] for name in (*columns, "steps")
        }
        numbers = sorted({name for run in self.runs for name in run.result})
        for name in numbers:
            values = [run.result.get(name) for run in self.runs]
            if not any(isinstance(value, list | dict) for value in values):
                rows.setdefault(name, values)
        return pa.table(rows)


def read_store(path: str | Path, *, all_runs: bool = False) -> StudyRuns:
    """The runs in a folder or an archive; raises if there is no study, or its plan is damaged.

    Every file of every run is looked at. A run that cannot be read costs the others nothing.

    Args:
        path: The folder, or a file that `headwise study archive` wrote.
        all_runs: Whether runs count that are there and not in the plan: those of the study as it
            was before its file or its arguments changed.
    """
    store = Store(path)
    if store.archive is None and not (store.folder / "study.json").is_file():
        raise ConfigError(
            "no study in this folder",
            got=str(path),
            allowed="a folder with a study.json, as `headwise study run` makes it, or a file that "
            "`headwise study archive` wrote",
        )
    study = store.study()
    plan = frozenset(entry["id"] for entry in study["plan"])
    records = list(store.records(all_runs=all_runs))
    good = [record for record in records if not record.why]
    beside = 0 if all_runs else sum(map(store.is_finished, store.ids_beside()))
    return StudyRuns(
        store.folder,
        study["name"],
        str(study.get("about", "")).encode(errors="replace").decode(),
        tuple(record for record in good if record.error is None),
        tuple(record for record in good if record.error is not None),
        plan,
        beside,
        tuple(record for record in records if record.why),
    )


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
