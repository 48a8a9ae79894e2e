"""The file of an archived study: a row for each run, and in its metadata what the study is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.added import canonical_json
from headwise.errors import ConfigError
from headwise.files import parse_json, write_whole
from headwise.study.names import STUDY_NAMES, is_study_name
from headwise.study.run import Run
from headwise.study.tables import UNREADABLE, read_table, table_bytes
from headwise.upgrade import LAYOUT, LAYOUTS, plain_id, upgrade

if TYPE_CHECKING:
    import pyarrow as pa

_STUDY = b"headwise.study"
"""Where the file's metadata hold what `study.json` says beside the plan."""
_DIGEST = b"headwise.study.sha256"
"""And where its digest is: checksums of Parquet are over the table alone."""
_BESIDE = "beside_the_plan"
"""Among them, the ids of runs that are not in the plan; where it is missing, as in older archives,
all runs are."""
PARTS = ("fingerprint", "result", "error")
"""Files of a run that are kept as they are, beside its configuration."""


@dataclass(frozen=True)
class ArchiveFile:
    """An archived study; only that it is one has been checked."""

    study: dict[str, Any]
    """As `study.json`, with the plan."""
    files: dict[str, dict[str, bytes]]
    """The files of every run by name; of one that is not finished, its configuration alone."""
    nameless: tuple[str, ...]
    """What stands for the ids of those of which it cannot be read what they are."""


def read_archive_file(path: Path) -> ArchiveFile:
    """The study in a file; raises if it is none. Runs may be damaged."""
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
        raise no_archive(path, error) from error
    if version not in LAYOUTS:
        raise ConfigError(f"{path} has another layout", got=version, allowed=str(LAYOUT))
    if not is_study_name(study["name"]):  # it is to name a folder here
        raise ConfigError(
            f"{path} has a name that no study can have",
            got=repr(study["name"]),
            allowed=STUDY_NAMES,
            fix="Was it changed by hand? Get another copy from where you have it.",
        )
    if not fits:
        raise no_archive(path, f"columns {', '.join(table.schema.names)}")
    files: dict[str, dict[str, bytes]] = {}
    plan, nameless = [], []
    for place, row in enumerate(table.to_pylist()):
        try:
            said = parse_json(row["config"])
            config = upgrade(said)
            run_id = Run.from_json(config).id
        except (ValueError, TypeError):
            nameless.append(run_id := f"run {place}")
        else:
            if plain_id(said) not in beside:
                plan.append({**config, "id": run_id})
        files[run_id] = _files(row)
    return ArchiveFile({**study, "version": LAYOUT, "plan": plan}, files, tuple(nameless))


def write_archive_file(
    path: Path, study: dict[str, Any], beside: Sequence[str], rows: list[dict[str, Any]]
) -> None:
    """Writes the file; what is there is replaced once the new one is whole.

    Args:
        path: The file.
        study: What `study.json` says, of which the plan is left out.
        beside: The ids of runs that are not in the plan.
        rows: The columns of each run by name.
    """
    import pyarrow as pa

    header = {name: value for name, value in study.items() if name != "plan"}
    table = pa.Table.from_pylist(rows, _schema({**header, **({_BESIDE: beside} if beside else {})}))
    write_whole(path, table_bytes(table, compression_level=19))


def no_archive(path: Path, reason: object) -> ConfigError:
    """What to tell one whose file is none, or is damaged."""
    return ConfigError(
        f"{path} is no archived study",
        got=str(reason),
        allowed="a file that `headwise study archive` wrote",
    )


def _files(row: dict[str, Any]) -> dict[str, bytes]:
    """The files of a run, from its row."""
    texts = {f"{part}.json": row[part] for part in ("config", *PARTS)}
    if row["curve"] is not None:
        texts["curve.json"] = canonical_json({"returns": row["curve"]})
    return {name: text.encode() for name, text in texts.items() if text is not None}


def _schema(study: dict[str, Any]) -> pa.Schema:
    import pyarrow as pa

    texts = [(name, pa.string()) for name in ("config", *PARTS)]
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
