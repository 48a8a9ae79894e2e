"""Training in this very process, one pack after the other: no workers, plain tracebacks."""

from __future__ import annotations

from collections.abc import Iterator

from headwise.study.executors.base import (
    Crashed,
    Event,
    ExecutorSettings,
    Finished,
    Source,
    executors,
)
from headwise.study.train import train_pack


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
                results = train_pack(
                    pack,
                    self.settings.thresholds,
                    self.settings.device,
                    keep_checkpoints=self.settings.keep_checkpoints,
                )
            except Exception as error:  # whatever it is, it is that run's, not the study's
                yield Crashed.by(pack, error)
            else:
                yield Finished(pack, results)
