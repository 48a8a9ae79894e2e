"""Numbers of a run as JSON, a line for each seed and report."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence

from headwise.training.loggers.base import finite_values
from headwise.training.loggers.lines import LinesFile
from headwise.training.report import Report


class JSONLLogger:
    """A line `{"step": ..., "seed": ..., "rollout/ep_rew_mean": ..., ...}` for each seed.

    Args:
        path: The file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = LinesFile(path, header="", step_of=lambda line: int(json.loads(line)["step"]))

    def check_unused(self) -> None:
        """Refuses a file that holds another run."""
        self._file.check_unused()

    def open(self, seeds: Sequence[int], step: int) -> None:
        """Begins, or goes on after `step`."""
        self._file.open(step)

    def write(self, report: Report) -> None:
        """Takes one report."""
        times = Counter(report.seeds)
        for member, seed in enumerate(report.seeds):
            row = {"step": report.step, "seed": seed, **finite_values(report, member)}
            if times[seed] > 1:  # which of those that have it
                row["member"] = member
            self._file.write(json.dumps(row) + "\n")

    def flush(self) -> None:
        """Nothing waits: every report is written at once."""

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
