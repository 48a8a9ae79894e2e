"""A text file of lines with a step in each, which can be taken back to an earlier step."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO

from headwise.errors import ConfigError
from headwise.files import replace_file
from headwise.training.loggers.base import another_run, writable


class LinesFile:
    """Lines that are on their way to the disk after every write.

    Args:
        path: The file.
        header: The first line, if there is one.
        step_of: The step of a line; a ValueError for a line that was cut off.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, header: str, step_of: Callable[[str], int]
    ) -> None:
        self._path = writable(path)
        self._header, self._step_of = header, step_of
        self._file: IO[str] | None = None

    def check_unused(self) -> None:
        """Refuses a file with anything in it but the header."""
        if self._path.exists() and self._path.read_text(errors="replace") not in ("", self._header):
            raise another_run(self._path)

    def open(self, step: int) -> None:
        """Keeps the lines up to a step, and goes on behind them."""
        kept = self._header + "".join(line for line in self._lines() if self._is_kept(line, step))
        try:
            replace_file(self._path, kept.encode())
            self._file = open(self._path, "a")  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise ConfigError(
                "cannot write there", got=f"{self._path}: {error.strerror}"
            ) from error

    def write(self, text: str) -> None:
        """Adds whole lines."""
        assert self._file is not None, "open comes first"
        self._file.write(text)
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _lines(self) -> list[str]:
        if not self._path.exists():
            return []
        lines = self._path.read_text(errors="replace").splitlines(keepends=True)
        return lines[1:] if self._header else lines

    def _is_kept(self, line: str, step: int) -> bool:
        try:
            return line.endswith("\n") and self._step_of(line) <= step
        except (ValueError, KeyError, TypeError):
            return False
