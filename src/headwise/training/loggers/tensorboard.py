"""Numbers of a run for TensorBoard, under the tag names that dashboards know."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from headwise.training.loggers.base import (
    another_run,
    extra_module,
    finite_values,
    seed_labels,
    writable,
)
from headwise.training.report import Report


class TensorBoardLogger:
    """A TensorBoard run for each seed, `seed_0`, `seed_1`, ... below one folder.

    Tags are those of Stable-Baselines3 (`rollout/ep_rew_mean`, `time/fps`, `train/...`), and
    `heads/<name>/...` for the heads.

    Args:
        path: The folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        extra_module("tensorboard", "tensorboard")
        self._folder = writable(path, folder=True)
        self._writers: list[Any] = []

    def check_unused(self) -> None:
        """Refuses a folder that holds another run: TensorBoard would draw both as one line."""
        if any(self._folder.glob("seed_*/events.out.tfevents.*")):
            raise another_run(self._folder)

    def open(self, seeds: Sequence[int], step: int) -> None:
        """Begins, or goes on after `step`: TensorBoard then hides what was written behind it."""
        from torch.utils.tensorboard import SummaryWriter

        purge = step + 1 if step else None
        homes = [self._folder / f"seed_{label}" for label in seed_labels(seeds)]
        for home in homes if not step else ():  # of a run that begins once more
            for old in home.glob("events.out.tfevents.*"):
                old.unlink()
        self._writers = [SummaryWriter(str(home), purge_step=purge) for home in homes]

    def write(self, report: Report) -> None:
        """Takes one report."""
        for member, writer in enumerate(self._writers):
            for name, value in finite_values(report, member).items():
                writer.add_scalar(name, value, report.step)
            writer.flush()

    def flush(self) -> None:
        """Nothing waits: every report is written at once."""

    def close(self) -> None:
        """Closes the files."""
        for writer in self._writers:
            writer.close()
        self._writers = []
