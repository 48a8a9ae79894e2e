"""A study as one small file, to keep beside a paper, to send, or to go on from elsewhere.

It holds what each run is, where it was made, how it ended and its learning curve: what a report of
a sweep is made of. Episodes, metrics and checkpoints stay behind, and with them all but a few
hundred bytes of a run. Restored, its runs count as finished, and the study goes on with the rest.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwise.errors import ConfigError, StoreError
from headwise.study.files import disk_troubles, write_bytes
from headwise.study.measures import NUM_POINTS
from headwise.study.run import Run
from headwise.study.store import LAYOUT, Store, parquet_module

if TYPE_CHECKING:
    import pyarrow as pa

_STUDY = b"headwise.study"
"""Where the file's metadata hold what `study.json` says beside the plan."""
_JSON = ("fingerprint", "result", "error")
"""Files of a run that are kept as they are, beside its configuration."""


def archive_study(
    store: Store, on_run: Callable[[int, int], None] | None = None
) -> tuple[bytes, int, int]:
    """A study's folder as the bytes of one file; how many runs are in it, and how many finished.

    Runs that an earlier plan of the study left in the folder come along.

    Args:
        store: The folder.
        on_run: Told how many runs of how many were looked at.
    """
    import pyarrow as pa

    study = store.study()
    runs = [*store.plan(), *store.beside_the_plan()]
    rows: list[dict[str, Any]] = []
    for place, run in enumerate(runs):
        if on_run is not None:
            on_run(place, len(runs))
        rows.append({"config": _text(run.to_json()), **_outcome(store, run)})
    header = {name: value for name, value in study.items() if name != "plan"}
    table = pa.Table.from_pylist(rows, _schema(header))
    sink = io.BytesIO()
    parquet_module().write_table(table, sink, compression="zstd", compression_level=19)
    return sink.getvalue(), len(runs), sum(row["result"] is not None for row in rows)


def restore_study(data: bytes, name: str, store: Store) -> int:
    """Puts an archived study's runs into a folder; returns how many of them were not there before.

    The folder may hold runs of the same study already: the plans are joined, and what is finished
    stays as it is.

    Args:
        data: The bytes of the file.
        name: What the file is called, for errors.
        store: The folder.
    """
    header, rows = _read(data, name)
    runs = []
    for place, row in enumerate(rows):
        try:
            runs.append(Run.from_json(json.loads(row["config"])))
        except (ValueError, TypeError, ConfigError) as error:
            raise _no_archive(name, f"run {place}: {error}") from error
    plan = {entry["id"]: entry for entry in _plan_there(store)}
    plan |= {run.id: {"id": run.id, **run.to_json()} for run in runs}
    store.begin({**header, "plan": list(plan.values())})
    new = 0
    for run, row in zip(runs, rows, strict=True):
        contents = {f"{part}.json": json.loads(row[part]) for part in _JSON if row[part]}
        if row["curve"] is not None:
            contents["curve.json"] = {"returns": row["curve"]}
        if row["result"] is not None or (row["error"] and not store.is_failed(run.id)):
            new += store.put_files(run, contents)
    return new


def write_archive(path: Path, data: bytes) -> None:
    """Writes an archive, replacing what is there only once the new file is whole."""
    draft = path.with_name(f".{path.name}.tmp")
    with disk_troubles(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_bytes(draft, data)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


def study_name(data: bytes, name: str) -> str:
    """What the archived study is called."""
    return str(_read(data, name)[0]["name"])


def _schema(header: dict[str, Any]) -> pa.Schema:
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("config", *_JSON)]
    curve = ("curve", pa.list_(pa.float32()))
    return pa.schema([*texts, curve], metadata={_STUDY: _text(header)})


def _outcome(store: Store, run: Run) -> dict[str, Any]:
    """How a run ended; nothing of one that did not."""
    row: dict[str, Any] = dict.fromkeys((*_JSON, "curve"))
    try:
        if store.is_finished(run.id):
            row["result"] = _text(store.result(run.id))
            curve = store.curve(run.id)
            row["curve"] = None if np.isnan(curve).any() else curve.astype(np.float32)
        elif store.is_failed(run.id):
            row["error"] = _text(store.error(run.id))
        else:
            return row
        row["fingerprint"] = _text(store.fingerprint(run.id))
    except (OSError, ValueError, KeyError) as error:  # also what pyarrow raises
        raise StoreError(
            f"cannot read {store.runs / run.id}",
            got=str(error),
            fix="Delete the run's folder and run the study again; finished runs are not repeated.",
        ) from error
    return row


def _read(data: bytes, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What an archive says of itself, and its rows."""
    parquet = parquet_module()
    try:
        table = parquet.read_table(io.BytesIO(data))
        header = json.loads((table.schema.metadata or {})[_STUDY])
        version = header["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _no_archive(name, error) from error
    if version != LAYOUT:
        raise ConfigError(f"{name} has another layout", got=version, allowed=str(LAYOUT))
    if not table.schema.equals(_schema(header)):
        raise _no_archive(name, f"columns {', '.join(table.schema.names)}")
    rows: list[dict[str, Any]] = table.to_pylist()
    if any(row["curve"] is not None and len(row["curve"]) != NUM_POINTS for row in rows):
        raise _no_archive(name, f"a curve that has not {NUM_POINTS} points")
    return header, rows


def _plan_there(store: Store) -> list[dict[str, Any]]:
    there: list[dict[str, Any]] = []
    if (store.folder / "study.json").exists():
        there = store.study()["plan"]
    return there


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _no_archive(name: str, reason: object) -> ConfigError:
    return ConfigError(
        f"{name} is no archived study",
        got=str(reason),
        allowed="a file that `headwise study archive` wrote",
    )
