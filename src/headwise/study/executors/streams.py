"""One GPU, many populations: each trains in a thread of this process, on a stream of its own.

Small networks leave most of a GPU idle, so kernels of several populations run at the same time.
Separate processes would gain nothing: a GPU takes turns between them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from types import TracebackType

import torch

from headwise.errors import ConfigError
from headwise.study.executors.base import (
    Crashed,
    Event,
    ExecutorSettings,
    Finished,
    Source,
    Stepped,
    executors,
)
from headwise.study.planner import Pack
from headwise.study.train import train_pack

WORKERS = 8
"""Populations at a time, if nothing is said: more hide little that is left to hide."""
MOST = 24
"""Populations at a time: torch hands out 32 streams in all, and then the same ones again."""


@executors.register("streams")
class StreamsExecutor:
    """Threads of this process, each with a CUDA stream."""

    def __init__(self, settings: ExecutorSettings) -> None:
        self.settings = settings
        self.num_workers = min(settings.workers or WORKERS, MOST)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._streams: queue.SimpleQueue[torch.cuda.Stream] = queue.SimpleQueue()
        if not settings.device.startswith("cuda") or not torch.cuda.is_available():
            raise ConfigError(
                "streams are for a GPU",
                got=f"device {settings.device}, {torch.cuda.device_count()} CUDA devices here",
                fix="Give --device cuda, or use the executor `local`.",
            )

    def __enter__(self) -> StreamsExecutor:
        # A few streams, used again and again: torch has 32 in all, and two populations on one
        # stream would get in each other's way.
        for _ in range(self.num_workers):
            stream = torch.cuda.Stream(self.settings.device)  # type: ignore[no-untyped-call]
            self._streams.put(stream)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Threads are daemons: those that still work when the study is stopped end with the process.
        return None

    def run(self, source: Source) -> Iterator[Event]:
        """Keeps as many populations going as there are workers."""
        busy = 0
        while True:
            while busy < self.num_workers and (pack := source()) is not None:
                threading.Thread(target=self._train, args=(pack,), daemon=True).start()
                busy += 1
            if not busy:
                return
            event = self._events.get()
            busy -= isinstance(event, Finished | Crashed)
            yield event

    def _train(self, pack: Pack) -> None:
        stream = self._streams.get()
        try:
            with torch.cuda.stream(stream):
                results = train_pack(
                    pack,
                    self.settings.thresholds,
                    self.settings.device,
                    on_steps=lambda steps: self._events.put(Stepped(pack, steps)),
                    keep_checkpoints=self.settings.keep_checkpoints,
                )
        except Exception as error:  # whatever it is, it is that run's, not the study's
            self._streams.put(stream)
            self._events.put(Crashed.by(pack, error))
        else:
            self._streams.put(stream)
            self._events.put(Finished(pack, results))
