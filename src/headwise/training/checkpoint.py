"""Checkpoints: one zip of JSON and safetensors, written whole or not at all.

Nothing in the file is code: it is never unpickled, and reading it checks every size before it
believes it. A new checkpoint takes the old one's place only when it is safely on the disk.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import safetensors.numpy
import torch
from safetensors import SafetensorError
from torch import Tensor

from headwise.errors import CheckpointError

FORMAT = "headwise checkpoint"
VERSION = 1
"""Of the format; a file with a higher one is refused."""

_INFO = "checkpoint.json"
_ENTRY = re.compile(r"[a-z_]+(/[A-Za-z0-9_.]+)?\.safetensors")
_MAX_ENTRIES = 10_000
_MAX_INFO = 1 << 24
_LARGE = 1 << 24
"""A tensor of so many bytes has an entry of its own, so that writing never copies all at once."""


class Checkpoint(NamedTuple):
    """What a file holds: a description in JSON, and tensors by part and name."""

    info: dict[str, Any]
    tensors: dict[str, dict[str, Tensor]]


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Writes a file in one step: a reader sees the old one or the new one, never a part.

    A process that is killed while it writes leaves `.NAME.partial` behind, which the next write
    replaces.
    """
    try:
        target = Path(path)
        partial = target.with_name(f".{target.name}.partial")
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            "a checkpoint needs the path of a file", got=repr(path), allowed="for example 'run.zip'"
        ) from error
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(partial, "wb") as file:
            _write_zip(file, checkpoint)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
        _sync_folder(target.parent)
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):
            partial.unlink()
        _refuse_writing(target, error)


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """What `write_checkpoint` would write, for those who keep files themselves."""
    file = io.BytesIO()
    _write_zip(file, checkpoint)
    return file.getvalue()


def _write_zip(file: Any, checkpoint: Checkpoint) -> None:
    # Stored, not deflated: numbers hardly shrink, and a night's replay must not take minutes.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        entries: dict[str, dict[str, Tensor]] = {}
        for part, tensors in checkpoint.tensors.items():
            small = {n: x for n, x in tensors.items() if x.numel() * x.element_size() < _LARGE}
            entries[part] = small
            entries |= {f"{part}/{n}": {n: x} for n, x in tensors.items() if n not in small}
        info = {"format": FORMAT, "version": VERSION, "entries": list(entries)}
        archive.writestr(_INFO, json.dumps({**info, **checkpoint.info}, indent=1))
        for name, tensors in entries.items():
            _write_entry(archive, name, tensors)


def _write_entry(archive: zipfile.ZipFile, name: str, tensors: dict[str, Tensor]) -> None:
    arrays = {n: x.detach().cpu().contiguous().numpy() for n, x in tensors.items()}
    archive.writestr(f"{name}.safetensors", safetensors.numpy.save(arrays))


def _sync_folder(folder: Path) -> None:
    """The rename itself survives a power cut, where the system can promise it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _refuse_writing(path: Path, error: Exception) -> NoReturn:
    kept = ""
    with contextlib.suppress(OSError, ValueError):
        kept = " The previous checkpoint is untouched." if path.is_file() else ""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise CheckpointError(
            f"no room to save {str(path)!r}: the disk is full",
            fix=f"Make room, or save elsewhere.{kept}",
        ) from error
    reason = error.strerror if isinstance(error, OSError) else error
    raise CheckpointError(
        f"cannot save {str(path)!r}",
        got=str(reason or error),
        allowed="a file in a folder that can be written to",
        fix=f"Choose another path.{kept}",
    ) from error


def read_checkpoint(
    path: str | os.PathLike[str], only: Collection[str] | None = None
) -> Checkpoint:
    """Reads a file that may be anything; what is not a whole checkpoint is refused.

    Args:
        path: The file.
        only: The parts to read, if the others are not needed.
    """
    name = repr(str(path))
    if not isinstance(path, str | bytes | os.PathLike):
        raise CheckpointError("a checkpoint is a file", got=repr(path), allowed="a path")
    try:
        with open(path, "rb") as file:
            return _read_zip(file, name, only)
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no checkpoint at {name}", fix="Check the path.") from error
    except (OSError, ValueError, TypeError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(
            f"cannot read {name}", got=str(error), allowed="a file that can be read"
        ) from error


def _read_zip(file: Any, name: str, only: Collection[str] | None) -> Checkpoint:
    size = os.fstat(file.fileno()).st_size
    tensors: dict[str, dict[str, Tensor]] = {}
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _check_entries(entries, size, name)
            info = _read_info(archive.read(_INFO), name)
            stems = [entry.filename.removesuffix(".safetensors") for entry in entries]
            if sorted([*info["entries"], _INFO]) != sorted(stems):
                raise _untrusted(name, "entries that are missing or too many")
            for stem in info["entries"]:
                if only is not None and stem.split("/")[0] not in only:
                    continue
                arrays = safetensors.numpy.load(archive.read(f"{stem}.safetensors"))
                part = tensors.setdefault(stem.split("/")[0], {})
                part |= {n: torch.from_numpy(np.array(x)) for n, x in arrays.items()}
    except CheckpointError:
        raise
    except (zipfile.BadZipFile, EOFError) as error:
        raise CheckpointError(
            f"{name} is not a whole checkpoint",
            got=str(error),
            allowed="a file written by Agent.save or by a run with checkpoint=...",
            fix="Was it copied only in part? Use another checkpoint.",
        ) from error
    except (SafetensorError, ValueError, KeyError, NotImplementedError, MemoryError) as error:
        raise _untrusted(name, f"{type(error).__name__}: {error}") from error
    return Checkpoint(info, tensors)


def _check_entries(entries: list[zipfile.ZipInfo], size: int, name: str) -> None:
    """Refuses an archive that promises more than its own size, or names that we never write."""
    names = [entry.filename for entry in entries]
    if len(entries) > _MAX_ENTRIES or len(set(names)) < len(names):
        raise _untrusted(name, f"{len(names)} entries, {len(set(names))} different")
    if _INFO not in names:
        raise _untrusted(name, f"no {_INFO} inside")
    for entry in entries:
        if entry.filename != _INFO and not _ENTRY.fullmatch(entry.filename):
            raise _untrusted(name, f"an entry called {entry.filename[:80]!r}")
        stored = entry.compress_type == zipfile.ZIP_STORED
        if not stored or entry.compress_size != entry.file_size or entry.flag_bits & 1:
            raise _untrusted(name, f"{entry.filename!r} is compressed or encrypted")
        if entry.filename == _INFO and entry.file_size > _MAX_INFO:
            raise _untrusted(name, f"a description of {entry.file_size} bytes")
    if sum(entry.file_size for entry in entries) > size:
        raise _untrusted(name, f"entries larger than the file's {size} bytes")


def _read_info(text: bytes, name: str) -> dict[str, Any]:
    try:
        info = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _untrusted(name, f"no JSON: {error}") from error
    if not isinstance(info, dict) or info.get("format") != FORMAT:
        raise _untrusted(name, "a description of something else")
    listed = info.setdefault("entries", [])
    if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
        raise _untrusted(name, "no list of its entries")
    version = info.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise CheckpointError(
            f"{name} has a format that this version does not read",
            got=version,
            allowed=f"1 to {VERSION}",
            fix="Update: pip install --upgrade headwise.",
        )
    return info


def _untrusted(name: str, why: str) -> CheckpointError:
    return CheckpointError(
        f"{name} is not a checkpoint of ours",
        got=why,
        allowed="a file written by Agent.save or by a run with checkpoint=...",
    )
