"""Tables of a study as Parquet: how they are written, and the one way in which they are read."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.errors import ConfigError
from headwise.study.result import EpisodeTable, MetricTable

if TYPE_CHECKING:
    import pyarrow as pa

UNREADABLE = (OSError, ValueError, KeyError, RuntimeError)
"""What pyarrow raises over a file that is not what it should be."""


def parquet_module() -> Any:
    """Pyarrow's module for Parquet files; raises with advice if it is not installed."""
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ConfigError(
            "studies keep their tables as Parquet, and pyarrow is not installed",
            fix="pip install 'headwise[study]'",
        ) from error
    return parquet


def read_table(source: Path | bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """A table from a file, or from what a file holds; raises one of `UNREADABLE`.

    Pyarrow is handed memory and asked for no threads. With its own, which may still be about to
    let go of a Python object when the interpreter ends, a program that is done aborts now and then.
    """
    parquet = parquet_module()
    import pyarrow as pa

    data = source.read_bytes() if isinstance(source, Path) else source
    with parquet.ParquetFile(pa.BufferReader(data)) as file:
        return file.read(columns=None if columns is None else list(columns), use_threads=False)


def episodes_bytes(episodes: EpisodeTable) -> bytes:
    """The file of a run's episodes."""
    columns = {"step": episodes.step, "return": episodes.returns, "length": episodes.length}
    return _table_bytes(columns, {"step": "int64", "return": "float32", "length": "int32"})


def metrics_bytes(metrics: MetricTable) -> bytes:
    """The file of a run's metrics."""
    columns = {"step": metrics.step, "name": metrics.name, "value": metrics.value}
    return _table_bytes(columns, {"step": "int64", "name": "name", "value": "float32"})


def _table_bytes(columns: dict[str, Any], types: dict[str, str]) -> bytes:
    parquet = parquet_module()
    import pyarrow as pa

    kinds: dict[str, pa.DataType] = {
        "int64": pa.int64(),
        "int32": pa.int32(),
        "float32": pa.float32(),
        "name": pa.dictionary(pa.int16(), pa.string()),
    }
    schema = pa.schema([(name, kinds[kind]) for name, kind in types.items()])
    arrays = [pa.array(columns[name], kinds[kind]) for name, kind in types.items()]
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), sink, compression="zstd")
    return sink.getvalue()
