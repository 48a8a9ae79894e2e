"""Training in this very process, one pack after the other: no workers, plain tracebacks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

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


@executors.register("inline")
class InlineExecutor:
    """No processes; a pack is trained when it is asked for."""

    def __init__(self, settings: ExecutorSettings) -> None:
        self.settings = settings
        self.num_workers = 1

    def __enter__(self) -> InlineExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def run(self, source: Source) -> Iterator[Event]:
        """Trains one pack after the other."""
        while (pack := source()) is not None:
            try:
                yield from self._train(pack)
            except Exception as error:  # whatever it is, it is that run's, not the study's
                yield Crashed.by(pack, error)

    def _train(self, pack: Pack) -> Iterator[Event]:
        news: deque[Event] = deque()
        turns = train_by_turns(
            pack,
            self.settings.thresholds,
            self.settings.device,
            on_steps=lambda *found: news.append(Stepped(pack, *found)),
            keep_checkpoints=self.settings.keep_checkpoints,
            extras=self.settings.extras,
        )
        while True:
            try:
                next(turns)
            except StopIteration as end:
                yield Finished(pack, end.value)
                return
            while news:
                yield news.popleft()
