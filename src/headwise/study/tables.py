"""Tables of a study as Parquet: the one way in which they are written, and the one to read them.

Every page has a checksum that is verified, so that a flipped bit is no other number.
"""

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
    with parquet.ParquetFile(pa.BufferReader(data), page_checksum_verification=True) as file:
        table = file.read(columns=None if columns is None else list(columns), use_threads=False)
        _check_rows(file.metadata, table)
    table.validate(full=True)  # of a dictionary that is cut short its indices say it
    for field in table.schema:
        _check_kind(field)
    if missing := [name for name in columns or () if name not in table.column_names]:
        raise KeyError(f"no column {', '.join(missing)}")
    return table


def _check_rows(metadata: Any, table: pa.Table) -> None:
    """No checksum is over the number of rows, which stands in the file in several places."""
    groups = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
    if not table.num_rows == metadata.num_rows == sum(groups):
        raise ValueError("the file does not agree with itself about its rows")


def _check_kind(field: pa.Field) -> None:
    """Nor is any over what kind of numbers they are: we write numbers, names and lists of them."""
    import pyarrow as pa

    kind = field.type
    if pa.types.is_dictionary(kind) or pa.types.is_list(kind):
        kind = kind.value_type
    if not any(
        is_it(kind) for is_it in (pa.types.is_integer, pa.types.is_floating, pa.types.is_string)
    ):
        raise ValueError(f"a column {field.name!r} of {field.type}")


def episodes_bytes(episodes: EpisodeTable) -> bytes:
    """The file of a run's episodes."""
    columns = {"step": episodes.step, "return": episodes.returns, "length": episodes.length}
    return _table_bytes(columns, {"step": "int64", "return": "float32", "length": "int32"})


def metrics_bytes(metrics: MetricTable) -> bytes:
    """The file of a run's metrics."""
    columns = {"step": metrics.step, "name": metrics.name, "value": metrics.value}
    return _table_bytes(columns, {"step": "int64", "name": "name", "value": "float32"})


def table_bytes(table: pa.Table, compression_level: int | None = None) -> bytes:
    """A table as the file that `read_table` reads."""
    sink = io.BytesIO()
    parquet_module().write_table(
        table,
        sink,
        compression="zstd",
        compression_level=compression_level,
        write_page_checksum=True,
    )
    return sink.getvalue()


def _table_bytes(columns: dict[str, Any], types: dict[str, str]) -> bytes:
    import pyarrow as pa

    kinds: dict[str, pa.DataType] = {
        "int64": pa.int64(),
        "int32": pa.int32(),
        "float32": pa.float32(),
        "name": pa.dictionary(pa.int16(), pa.string()),
    }
    schema = pa.schema([(name, kinds[kind]) for name, kind in types.items()])
    arrays = [pa.array(columns[name], kinds[kind]) for name, kind in types.items()]
    return table_bytes(pa.Table.from_arrays(arrays, schema=schema))
