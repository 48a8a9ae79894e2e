"""One GPU, many populations: each has a stream of its own, and one thread serves them by turns.

Only environments that take long have threads of their own.

Small networks leave most of a GPU idle, so kernels of several populations run at the same time.
Separate processes would gain nothing: a GPU takes turns between them.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

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
from headwise.study.train import train_by_turns
from headwise.training.device import let_streams_run_apart
from headwise.training.turns import Question, Turns, one_round

WORKERS = 16
"""Populations at a time, if nothing is said: more hide little that is left to hide."""
MOST = 24
"""Populations at a time: torch hands out 32 streams in all, and then the same ones again."""


@executors.register("streams")
class StreamsExecutor:
    """Populations of this process, each on a CUDA stream."""

    def __init__(self, settings: ExecutorSettings) -> None:
        self.settings = settings
        self.num_workers = min(settings.workers or WORKERS, MOST)
        self._events: deque[Event] = deque()
        self._streams: list[torch.cuda.Stream] = []
        # For environments that take long: each population may have one step under way.
        self._aside = ThreadPoolExecutor(self.num_workers, "headwise-env")
        let_streams_run_apart()
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
            self._streams.append(stream)
        gc.freeze()  # what is there already need not be looked through before every training
        return self

    def __exit__(self, *_: object) -> None:
        self._aside.shutdown()
        gc.unfreeze()

    def run(self, source: Source) -> Iterator[Event]:
        """Keeps as many populations going as there are workers."""
        before = torch.cuda.current_stream(self.settings.device)
        trainings: list[Turns] = []
        try:
            while True:
                while self._streams and (pack := source()) is not None:
                    trainings.append(Turns(self._training(pack), self._streams.pop(), pack))
                if not trainings:
                    return
                for ended in one_round(trainings):
                    trainings = [training for training in trainings if training is not ended]
                    self._events.append(_last_event(ended))
                    assert ended.stream is not None
                    self._streams.append(ended.stream)
                while self._events:
                    yield self._events.popleft()
        finally:
            torch.cuda.set_stream(before)

    def _training(self, pack: Pack) -> Iterator[Question]:
        return train_by_turns(
            pack,
            self.settings.thresholds,
            self.settings.device,
            on_steps=lambda *news: self._events.append(Stepped(pack, *news)),
            keep_checkpoints=self.settings.keep_checkpoints,
            extras=self.settings.extras,
            aside=self._aside,
        )


def _last_event(training: Turns) -> Event:
    if training.error is not None:
        return Crashed.by(training.about, training.error)
    return Finished(training.about, training.result)
