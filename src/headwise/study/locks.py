"""Who works on what, when several runners share a folder: one `flock` for each run.

The kernel lets go of a lock when its process dies, however it dies. Locks only save work: if two
runners did work on one run, both would get the same result, and the store takes the first.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

from headwise.files import disk_troubles

try:
    import fcntl
except ImportError:  # Windows: as on a file system without locks
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}
"""What a file system says that has none."""
_PLAN, _HERE = ".plan", ".runners"
"""Held by one who changes the plan; shared by all who are at work."""
_PATIENCE = 10.0
"""Seconds to wait for one who changes the plan, which takes milliseconds."""
_ALL: WeakSet[Locks] = WeakSet()


class Locks:
    """The locks of one runner in a study's folder; a context manager.

    Args:
        folder: The study's folder.
        ignore: Whether to take also what another runner holds.
    """

    def __init__(self, folder: Path, *, ignore: bool = False) -> None:
        self.folder = folder
        self.missing = fcntl is None
        """Whether the file system was found to have no locks."""
        self._locks = folder / ".locks"
        self._ignore = ignore
        self._held: dict[str, int] = {}
        _ALL.add(self)

    def __enter__(self) -> Locks:
        with disk_troubles(self.folder):
            self._locks.mkdir(parents=True, exist_ok=True)
            for path in self._locks.glob("[!.]*"):  # of the dead, who left the files behind
                if (handle := self._lock(path.name)) is not None:
                    self._unlock(path.name, handle)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._held):
            self.release(name)

    def take(self, run_id: str) -> bool:
        """Takes the lock of a run; False if another runner, alive, has it."""
        if run_id in self._held:
            return True
        with disk_troubles(self.folder):
            handle = self._lock(run_id)
        if handle is None:
            return self.missing or self._ignore
        self._held[run_id] = handle
        return True

    def release(self, run_id: str) -> None:
        """Lets go of a run."""
        if (handle := self._held.pop(run_id, None)) is not None:
            self._unlock(run_id, handle)

    def held_elsewhere(self, run_ids: Iterable[str]) -> list[str]:
        """Those runs that others are working on."""
        held = []
        for run_id in (run_id for run_id in run_ids if run_id not in self._held):
            try:
                handle = self._lock(run_id, shared=True, flags=os.O_RDONLY)
            except OSError:  # there is no such lock
                continue
            if handle is not None:
                os.close(handle)
            elif not self.missing:
                held.append(run_id)
        return held

    @contextmanager
    def planning(self) -> Iterator[bool]:
        """Keeps others from changing the plan; tells whether this runner is alone in the folder.

        From then on it counts as at work.
        """
        with disk_troubles(self.folder):
            self.release(_HERE)
            plan = self._wait_for(_PLAN)
        try:
            with disk_troubles(self.folder):
                if (alone := self._lock(_HERE)) is not None:
                    os.close(alone)
                if (here := self._wait_for(_HERE, shared=True)) is not None:
                    self._held[_HERE] = here
            yield alone is not None or self.missing
        finally:
            if plan is not None:
                self._unlock(_PLAN, plan)

    def forget(self) -> None:
        """Closes the files in a child of the process, which would keep their locks if it lived."""
        while self._held:
            with suppress(OSError):
                os.close(self._held.popitem()[1])

    def _wait_for(self, name: str, *, shared: bool = False) -> int | None:
        """A lock that others hold for moments; None if there are none, or one is stuck with it."""
        end = time.monotonic() + _PATIENCE
        while (handle := self._lock(name, shared=shared)) is None:
            if self.missing or time.monotonic() > end:
                return None
            time.sleep(0.01)
        return handle

    def _lock(
        self, name: str, *, shared: bool = False, flags: int = os.O_RDWR | os.O_CREAT
    ) -> int | None:
        """The open and locked file; None if another has it, or there are no locks here."""
        if fcntl is None:
            return None
        path = self._locks / name
        while True:
            handle = os.open(path, flags, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_NB | (fcntl.LOCK_SH if shared else fcntl.LOCK_EX))
                if _is_at(handle, path):
                    return handle
            except BlockingIOError:
                os.close(handle)
                return None
            except OSError as error:
                os.close(handle)
                if error.errno not in _NO_LOCKS:
                    raise
                self.missing = True
                return None
            os.close(handle)  # removed by its last holder after it was opened

    def _unlock(self, name: str, handle: int) -> None:
        """Lets go of a lock, and removes its file unless others share it."""
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(handle, self._locks / name):
                (self._locks / name).unlink()
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _forget_all() -> None:
    for locks in list(_ALL):
        locks.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
