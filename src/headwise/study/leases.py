"""Leases: who works on what, when several runners share a folder.

A runner has a file of its own that it touches now and then, and a lease is a file that names a
runner. A lease counts for as long as its runner lives: on the same machine the system is asked, and
a runner elsewhere is given up when its file has not been touched for a while.

Leases only save work. If two runners did work on one run, both would get the same result, and the
store takes the first.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from headwise.study.files import disk_troubles, unique

HEARTBEAT = 10.0
"""Seconds between two signs of life."""
PATIENCE = 60.0
"""Seconds without one after which a runner elsewhere is given up."""
_NAMELESS = 5.0
"""Seconds that a lease may be without a name: its runner was killed in the act of writing it."""


class Leases:
    """The leases of one runner in a study's folder; a context manager.

    Args:
        folder: The study's folder.
        heartbeat: Seconds between two signs of life.
        patience: Seconds without one after which another runner is given up.
    """

    def __init__(
        self, folder: Path, heartbeat: float = HEARTBEAT, patience: float = PATIENCE
    ) -> None:
        self.folder = folder
        self.token = unique(platform.node() or "runner")
        self._leases = folder / ".leases"
        self._runners = folder / ".runners"
        self._mine = self._runners / self.token
        self._identity = ""
        self._held: set[str] = set()
        self._heartbeat, self._patience = heartbeat, patience
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, name="heartbeat", daemon=True)

    def __enter__(self) -> Leases:
        with disk_troubles(self.folder):
            self._leases.mkdir(parents=True, exist_ok=True)
            self._runners.mkdir(exist_ok=True)
            identity = {"machine": _machine(), "pid": os.getpid(), "started": _started(os.getpid())}
            self._identity = json.dumps(identity)
            self._mine.write_text(self._identity)
        self._bury_the_dead()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for run_id in list(self._held):
            self.release(run_id)
        self._mine.unlink(missing_ok=True)

    def take(self, run_id: str) -> bool:
        """Takes a lease on a run; False if a runner that lives has one."""
        if run_id in self._held:
            return True
        path = self._leases / run_id
        with disk_troubles(self.folder):
            self._give_a_sign()
            while True:
                try:
                    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
                except FileExistsError:
                    if not self._take_from_the_dead(path):
                        return False
                    continue
                try:
                    os.write(handle, self.token.encode())
                finally:
                    os.close(handle)
                self._held.add(run_id)
                return True

    def release(self, run_id: str) -> None:
        """Lets go of a run."""
        self._held.discard(run_id)
        path = self._leases / run_id
        with contextlib.suppress(OSError):
            if path.read_text() == self.token:
                path.unlink()

    def held_elsewhere(self, run_ids: Iterable[str]) -> list[str]:
        """Those runs that other runners, alive, are working on."""
        held = []
        for run_id in run_ids:
            token = _text(self._leases / run_id)
            if token is not None and token != self.token and self._alive(token):
                held.append(run_id)
        return held

    # --- who lives ------------------------------------------------------------------------------

    def _live(self) -> None:
        while not self._stop.wait(self._heartbeat):
            with contextlib.suppress(OSError):
                self._give_a_sign()

    def _give_a_sign(self) -> None:
        try:
            os.utime(self._mine)
        except FileNotFoundError:
            # Silent for too long, as on a machine that slept, it was given up. It lives: without
            # its file no lease of it would count, neither those it has left nor those it will take.
            self._mine.write_text(self._identity)

    def _take_from_the_dead(self, path: Path) -> bool:
        """Removes a lease whose runner is dead; False if it lives."""
        token = _text(path)
        if token is None:
            return True  # it has just been released
        if token == "":
            if self._age(path) < _NAMELESS:
                return False
        elif self._alive(token):
            return False
        # Another runner may do the same right now, so it is moved away first and looked at again.
        moved = path.with_name(unique(f".{path.name}"))
        try:
            os.rename(path, moved)
        except FileNotFoundError:
            return True
        if _text(moved) != token:
            with contextlib.suppress(OSError):
                os.link(moved, path)  # that was a new lease: back with it
        moved.unlink(missing_ok=True)
        return True

    def _alive(self, token: str) -> bool:
        path = self._runners / token
        text = _text(path)
        if text is None:
            return False
        try:
            identity = json.loads(text)
        except ValueError:
            return self._age(path) < self._patience
        if identity["machine"] == _machine():
            started = _started(identity["pid"])
            return started is not None and started == identity["started"]
        return self._age(path) < self._patience

    def _age(self, path: Path) -> float:
        """Seconds since a file was touched, by the clock of the disk it is on."""
        try:
            touched = path.stat().st_mtime
        except OSError:
            return 0.0
        try:
            os.utime(self._mine)
            return self._mine.stat().st_mtime - touched
        except OSError:  # one who only looks has no file there
            return time.time() - touched

    def _bury_the_dead(self) -> None:
        """Removes the files of runners that are gone, and their leases with them."""
        for path in self._runners.iterdir():
            if not self._alive(path.name):
                path.unlink(missing_ok=True)
        for path in self._leases.iterdir():
            if path.name.startswith("."):
                path.unlink(missing_ok=True)
            else:
                self._take_from_the_dead(path)


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def _machine() -> str:
    """A machine, and the part of it in which process numbers mean the same."""
    parts = [platform.node()]
    if os.name != "posix":  # no cheap way to ask about a process: go by signs of life alone
        return f"{parts[0]} {os.getpid()}"
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _started(pid: int) -> str | None:
    """When a process started, so that a number used again is not taken for it; None if dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
        return _exists(pid)  # no /proc on this system
    return None if fields[0] in ("Z", "X") else fields[19]


def _exists(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return "running"
    return "running"
