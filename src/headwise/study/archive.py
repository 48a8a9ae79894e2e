"""A study as one small file, to keep beside a paper, to send, or to go on from elsewhere.

It holds what each run is, where it was made, how it ended and its learning curve: what a report of
a sweep is made of. Episodes, metrics and checkpoints stay behind, and with them all but a few
hundred bytes of a run. Restored, its runs count as finished, and the study goes on with the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwise.errors import ConfigError
from headwise.study.files import parse_json, write_whole
from headwise.study.measures import NUM_POINTS
from headwise.study.names import STUDY_NAMES, is_study_name
from headwise.study.run import Run, canonical_json
from headwise.study.store import LAYOUT, Store
from headwise.study.tables import UNREADABLE, read_table, table_bytes

if TYPE_CHECKING:
    import pyarrow as pa

_STUDY = b"headwise.study"
"""Where the file's metadata hold what `study.json` says beside the plan."""
_DIGEST = b"headwise.study.sha256"
"""And where its digest is: checksums of Parquet are over the table alone."""
_BESIDE = "beside_the_plan"
"""Among them, the ids of runs that are not in the plan; where it is missing, as in older archives,
all runs are."""
_JSON = ("fingerprint", "result", "error")
"""Files of a run that are kept as they are, beside its configuration."""


@dataclass(frozen=True)
class Archive:
    """An archived study, read and checked."""

    study: dict[str, Any]
    """What `study.json` says beside the plan."""
    runs: tuple[tuple[Run, dict[str, Any]], ...]
    """Every run, with its files by name; none of one that is not finished."""
    beside: frozenset[str] = frozenset()
    """The ids of runs that an earlier plan left in the folder."""

    @property
    def name(self) -> str:
        """What the study is called."""
        return str(self.study["name"])

    @property
    def num_finished(self) -> int:
        """How many of the runs are finished."""
        return sum("result.json" in files for _, files in self.runs)


def write_archive(
    store: Store, path: Path, on_run: Callable[[int, int], None] | None = None
) -> None:
    """Writes a study's folder as one file; what is there is replaced once the new one is whole.

    Runs that an earlier plan of the study left in the folder come along, and stay beside the plan.

    Args:
        store: The folder.
        path: The file.
        on_run: Told how many runs of how many were looked at.
    """
    import pyarrow as pa

    header = {name: value for name, value in store.study().items() if name != "plan"}
    beside = store.beside_the_plan()
    if beside:
        header[_BESIDE] = [run.id for run in beside]
    runs = [*store.plan(), *beside]
    rows = []
    for place, run in enumerate(runs):
        if on_run is not None:
            on_run(place, len(runs))
        rows.append({"config": canonical_json(run.to_json()), **_outcome(store, run)})
    table = pa.Table.from_pylist(rows, _schema(header))
    write_whole(path, table_bytes(table, compression_level=19))


def read_archive(path: Path) -> Archive:
    """The study in a file; raises if it is none, or not whole."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}", got=error.strerror) from error
    try:
        table = read_table(data)
        study = _header(table.schema.metadata or {})
        version, _ = study["version"], study["name"]
        beside = frozenset(study.pop(_BESIDE, ()))
        fits = table.schema.equals(_schema(study))
    except (*UNREADABLE, TypeError) as error:
        raise _no_archive(path, error) from error
    if version != LAYOUT:
        raise ConfigError(f"{path} has another layout", got=version, allowed=str(LAYOUT))
    if not is_study_name(study["name"]):  # it is to name a folder here
        raise ConfigError(
            f"{path} has a name that no study can have",
            got=repr(study["name"]),
            allowed=STUDY_NAMES,
            fix="Was it changed by hand? Ask whoever gave it to you for another.",
        )
    if not fits:
        raise _no_archive(path, f"columns {', '.join(table.schema.names)}")
    runs = []
    for place, row in enumerate(table.to_pylist()):
        try:
            runs.append((Run.from_json(parse_json(row["config"])), _files(row)))
        except (ValueError, TypeError, ConfigError) as error:
            raise _no_archive(path, f"run {place}: {error}") from error
    return Archive(study, tuple(runs), beside)


def restore(
    archive: Archive, store: Store, on_run: Callable[[int, int], None] | None = None
) -> int:
    """Puts an archived study's runs into a folder; returns how many of them were not there before.

    The folder may hold runs of the same study already: the plans are joined, and what is finished
    stays as it is.

    Args:
        archive: The study.
        store: The folder.
        on_run: Told how many runs of how many were put in.
    """
    there: dict[str, Any] = {"plan": []}
    if (store.folder / "study.json").exists():
        there = store.study()
    plan = {entry["id"]: entry for entry in there["plan"]}
    planned = (run for run, _ in archive.runs if run.id not in archive.beside)
    plan |= {run.id: {"id": run.id, **run.to_json()} for run in planned}
    store.begin({**archive.study, **there, "name": archive.name, "plan": list(plan.values())})
    new = 0
    for place, (run, files) in enumerate(archive.runs):
        if on_run is not None:
            on_run(place, len(archive.runs))
        if "result.json" in files or (files and not store.is_failed(run.id)):
            new += store.put_files(run, files)
    return new


def _schema(study: dict[str, Any]) -> pa.Schema:
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("config", *_JSON)]
    curve = ("curve", pa.list_(pa.float32()))
    said = canonical_json(study).encode()
    return pa.schema([*texts, curve], metadata={_STUDY: said, _DIGEST: _digest(said)})


def _header(metadata: dict[bytes, bytes]) -> dict[str, Any]:
    """What the file says of the study, if not a bit of it is another; raises a ValueError if so."""
    said = metadata[_STUDY]
    # Earlier versions wrote no digest, nor anything else.
    if len(metadata) > 1 and metadata.get(_DIGEST) != _digest(said):
        raise ValueError("what it says of the study is not as it was written")
    study: dict[str, Any] = parse_json(said)
    return study


def _digest(said: bytes) -> bytes:
    return hashlib.sha256(said).hexdigest().encode()


def _outcome(store: Store, run: Run) -> dict[str, Any]:
    """How a run ended, as a part of its row; nothing of one that did not."""
    row: dict[str, Any] = dict.fromkeys((*_JSON, "curve"))
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


def _files(row: dict[str, Any]) -> dict[str, Any]:
    """The files of a run, from its row."""
    files = {f"{part}.json": parse_json(row[part]) for part in _JSON if row[part] is not None}
    if not all(isinstance(file, dict) for file in files.values()):
        raise ValueError("a file that is no JSON object")
    if row["curve"] is not None:
        if len(row["curve"]) != NUM_POINTS:
            raise ValueError(f"a curve of {len(row['curve'])} points, not {NUM_POINTS}")
        files["curve.json"] = {"returns": row["curve"]}
    return files


def _no_archive(path: Path, reason: object) -> ConfigError:
    return ConfigError(
        f"{path} is no archived study",
        got=str(reason),
        allowed="a file that `headwise study archive` wrote",
    )
