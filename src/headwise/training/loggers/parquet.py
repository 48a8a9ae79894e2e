"""Numbers of a run as Parquet: a folder of parts with the columns step, seed, name, value."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwise.errors import ConfigError
from headwise.files import replace_file
from headwise.training.loggers.base import another_run, extra_module, finite_values, writable
from headwise.training.report import Report

ROWS = 50_000
"""Rows of a part."""
_COLUMNS = ("step", "seed", "name", "value")


class ParquetLogger:
    """A folder that pandas, polars or DuckDB read as one table.

    Every part is written whole. What a killed process had not written yet is later than its last
    checkpoint, and is written again when the run is resumed from there.

    Args:
        path: The folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._arrow = extra_module("pyarrow", "study")
        self._parquet = extra_module("pyarrow.parquet", "study")
        self._folder = writable(path, folder=True)
        self._rows: list[tuple[Any, ...]] = []

    def check_unused(self) -> None:
        """Refuses a folder that holds another run."""
        if any(self._folder.glob("part-*.parquet")):
            raise another_run(self._folder)

    def open(self, seeds: Sequence[int], step: int) -> None:
        """Begins, or goes on after `step`."""
        if len(set(seeds)) < len(seeds):
            raise ConfigError(
                "two members have one seed, by which this table tells members apart",
                got=list(seeds),
                fix="Write into a CSVLogger or a JSONLLogger, which number such members.",
            )
        self._rows = []
        for part in sorted(self._folder.glob("part-*.parquet")):
            table = self._read(part)
            kept = table.filter(self._arrow.compute.field("step") <= step)
            if len(kept) == len(table):
                continue
            if len(kept):  # under a name of its own, since its last step is another
                self._write(kept)
            part.unlink()  # last: a process stopped here has all rows, and repeats this

    def write(self, report: Report) -> None:
        """Takes one report."""
        self._rows += [
            (report.step, seed, name, value)
            for member, seed in enumerate(report.seeds)
            for name, value in finite_values(report, member).items()
        ]
        if len(self._rows) >= ROWS:
            self.flush()

    def flush(self) -> None:
        """Writes a part with what has been taken."""
        if not self._rows:
            return
        columns = dict(zip(_COLUMNS, zip(*self._rows, strict=True), strict=True))
        types = zip(_COLUMNS, ("int64", "uint64", "string", "float64"), strict=True)
        schema = self._arrow.schema([(name, getattr(self._arrow, kind)()) for name, kind in types])
        self._write(self._arrow.table({n: list(v) for n, v in columns.items()}, schema=schema))
        self._rows = []

    def _read(self, part: Path) -> Any:
        try:
            return self._parquet.read_table(part, page_checksum_verification=True)
        except (OSError, ValueError) as error:
            raise ConfigError(
                "cannot read the metrics of the run so far",
                got=f"{part}: {error}",
                fix="Delete that file; what it holds of earlier steps is lost.",
            ) from error

    def _write(self, table: Any) -> None:
        last = table["step"][-1].as_py()
        part = io.BytesIO()
        self._parquet.write_table(table, part, write_page_checksum=True)
        replace_file(self._folder / f"part-{last:015d}.parquet", part.getvalue())

    def close(self) -> None:
        """Writes what is left."""
        self.flush()
