"""Numbers of a run as a CSV file: step, seed, name, value."""

from __future__ import annotations

import os
from collections.abc import Sequence

from headwise.csv_cells import csv_text
from headwise.training.loggers.base import finite_values, seed_labels
from headwise.training.loggers.lines import LinesFile
from headwise.training.report import Report

_HEADER = "step,seed,name,value\n"


class CSVLogger:
    """A row for each number: no column ever has to be guessed beforehand.

    Args:
        path: The file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = LinesFile(path, header=_HEADER, step_of=lambda line: int(line.split(",")[0]))

    def check_unused(self) -> None:
        """Refuses a file that holds another run."""
        self._file.check_unused()

    def open(self, seeds: Sequence[int], step: int) -> None:
        """Begins, or goes on after `step`."""
        self._file.open(step)

    def write(self, report: Report) -> None:
        """Takes one report."""
        rows = [
            # A line for each, to resume.
            (report.step, label, " ".join(name.splitlines()), value)
            for member, label in enumerate(seed_labels(report.seeds))
            for name, value in finite_values(report, member).items()
        ]
        self._file.write(csv_text(rows))

    def flush(self) -> None:
        """Nothing waits: every report is written at once."""

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
