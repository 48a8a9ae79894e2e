"""Processes of this machine, one for each core, each with one thread.

A population of small networks gains nothing from more threads, and a result does not depend on who
trains it, so processes are the whole of the parallelism. A worker that dies is replaced; workers
whose driver dies end themselves.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from headwise.cores import usable_cores
from headwise.errors import ConfigError
from headwise.study.executors.base import (
    Crashed,
    Event,
    ExecutorSettings,
    Finished,
    Lost,
    Source,
    Stepped,
    executors,
)
from headwise.study.imports import check_imports, load_imports
from headwise.study.planner import Pack

_NEWS_EVERY = 0.5
"""Seconds between two reports of a worker."""
_CONTEXT = multiprocessing.get_context("spawn")
"""A fork would copy the state of torch's threads, which are not there any more."""


@executors.register("local")
class LocalExecutor:
    """A pool of processes that outlives the death of any of them."""

    def __init__(self, settings: ExecutorSettings) -> None:
        self.settings = settings
        self.num_workers = settings.workers or usable_cores()
        if settings.device != "cpu":
            raise ConfigError(
                "processes gain nothing on one accelerator",
                got=f"device {settings.device}",
                allowed="cpu",
                fix="Use the executor `streams` for it.",
            )
        check_imports(settings.imports)
        self._workers: list[_Worker] = []

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def run(self, source: Source) -> Iterator[Event]:
        """Keeps every worker busy; workers are started when there is work for them."""
        while True:
            self._hand_out(source)
            busy = {w.connection: w for w in self._workers if w.pack is not None}
            if not busy:
                return
            for ready in wait(list(busy)):
                yield busy[ready].news()  # type: ignore[index]
            self._workers = [worker for worker in self._workers if worker.alive]

    def _hand_out(self, source: Source) -> None:
        for place in range(self.num_workers):
            if place < len(self._workers) and self._workers[place].pack is not None:
                continue
            pack = source()
            if pack is None:
                return
            if place == len(self._workers):
                self._workers.append(_Worker(self.settings))
            self._workers[place].give(pack)


class _Worker:
    """The driver's end of one process."""

    def __init__(self, settings: ExecutorSettings) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        # No daemon, which could not have children: an environment may be run in processes too.
        self.process = _CONTEXT.Process(
            target=_work, args=(theirs, settings), name="headwise-worker"
        )
        self.process.start()
        theirs.close()  # so that the end of the process is the end of the connection
        self.pack: Pack | None = None
        self.alive = True

    def give(self, pack: Pack) -> None:
        """Sets it to work on a pack."""
        self.pack = pack
        with contextlib.suppress(OSError):  # if it is dead already, `news` will say so
            self.connection.send(pack)

    def news(self) -> Event:
        """What it has to say; that it is gone, if it cannot."""
        assert self.pack is not None
        pack = self.pack
        try:
            kind, what = self.connection.recv()
        except (EOFError, OSError):
            self.end()
            self.pack = None
            return Lost(pack, f"a worker process ended with exit code {self.process.exitcode}")
        if kind == "steps":
            return Stepped(pack, *what)
        self.pack = None
        if kind == "results":
            return Finished(pack, what)
        return Crashed(pack, *what)

    def end(self) -> None:
        """Ends the process, whatever it is doing."""
        self.alive = False
        self.process.kill()
        self.process.join()
        self.connection.close()


def _work(connection: Connection, settings: ExecutorSettings) -> None:
    """What a worker process does until its driver goes away."""
    os.environ["OMP_NUM_THREADS"] = "1"
    # This process was spawned; those of an environment begin as they do elsewhere on this system.
    multiprocessing.set_start_method(None, force=True)
    threading.Thread(target=_end_with_driver, daemon=True).start()
    import torch

    from headwise.study.train import train_pack
    from headwise.training.matmul_precision import set_matmul_precision

    torch.set_num_threads(1)
    set_matmul_precision(settings.matmul_precision)
    while True:
        try:
            pack = connection.recv()
        except (EOFError, OSError):
            return
        told = time.monotonic()

        def tell(steps: int, returns: list[float]) -> None:
            nonlocal told
            if time.monotonic() - told >= _NEWS_EVERY:
                told = time.monotonic()
                connection.send(("steps", (steps, returns)))

        answer: tuple[str, Any]
        try:
            load_imports(settings.imports)
            results = train_pack(
                pack,
                settings.thresholds,
                "cpu",
                tell,
                keep_checkpoints=settings.keep_checkpoints,
                extras=settings.extras,
            )
            answer = ("results", results)
        except Exception as error:  # whatever it is, it is that run's, not the study's
            crash = Crashed.by(pack, error)
            answer = ("crashed", (crash.kind, crash.message, crash.traceback))
        connection.send(answer)


def _end_with_driver() -> None:
    """Ends this process when the driver is gone, even if it was killed without a word."""
    driver = multiprocessing.parent_process()
    assert driver is not None
    wait([driver.sentinel])
    os._exit(1)
