"""Files that are whole or not there at all, and what to say when the disk will not take them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headwise.errors import StoreError


def unique(name: str) -> str:
    """A unique name; what stands before the dot says what it belongs to."""
    return f"{name}.{uuid.uuid4().hex[:12]}"


def json_bytes(data: Any) -> bytes:
    """A JSON file for people."""
    return (json.dumps(data, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file and sees it safely to the disk."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes, drafts: Path | None = None) -> None:
    """Puts a file in place in one step; readers see the old one or the new one.

    Args:
        path: The file.
        data: What is to be in it.
        drafts: The folder, on the same disk, where it is written first; if not given, its own.
    """
    draft = (drafts or path.parent) / unique(path.stem if drafts else f".{path.name}")
    try:
        write_bytes(draft, data)
        os.replace(draft, path)
        sync_folder(path.parent)
    finally:
        remove(draft)


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file that a user asked for, whole or not at all; what was there stays until then."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
    except OSError as error:
        raise StoreError(
            f"cannot write {path}",
            got=error.strerror or str(error),
            fix="Give another file with --out, or make room.",
        ) from error


def parse_json(text: str | bytes) -> Any:
    """What a text from anywhere says; a ValueError if it is no JSON, however deep it is nested."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def sync_folder(path: Path) -> None:
    """Sees a folder's entries safely to the disk, where the system can."""
    with contextlib.suppress(OSError):  # some systems do not open folders
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove(path: Path) -> None:
    """Removes a file or a folder; it does not matter if it is gone already."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


@contextlib.contextmanager
def disk_troubles(folder: Path) -> Iterator[None]:
    """Turns what the system says about a disk into what the user can do about it."""
    try:
        yield
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"there is no space left for the study in {folder}",
                got=error.strerror,
                fix="Finished runs are safe. Make room and start the study again: it goes on "
                "where it stopped.",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StoreError(
                f"the folder {folder} cannot be written to",
                got=error.strerror,
                fix="Choose another folder with --out, or change its permissions.",
            ) from error
        raise StoreError(f"the study's folder {folder} cannot be used", got=str(error)) from error
