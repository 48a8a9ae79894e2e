"""Tables of other libraries: what can be read from them, and how rows become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from headwise.errors import ConfigError


def columns_of(table: Any) -> dict[str, list[Any]]:
    """The columns of whatever holds some."""
    if isinstance(table, str | Path):
        try:
            from pyarrow import csv

            table = csv.read_csv(table)
        except (OSError, ValueError) as error:
            raise ConfigError("cannot read the table", got=f"{table}: {error}") from error
    if hasattr(table, "column_names"):  # pyarrow
        return {name: table[name].to_pylist() for name in table.column_names}
    if isinstance(table, Mapping):
        found = {str(name): list(values) for name, values in table.items()}
    elif hasattr(table, "columns"):  # pandas, polars
        found = {str(name): table[name].to_list() for name in table.columns}
    else:
        raise ConfigError(
            "this is no table",
            got=type(table).__name__,
            allowed="a data frame, a table of pyarrow, columns by name, or the path of a CSV",
        )
    if len({len(values) for values in found.values()}) > 1:
        raise ConfigError(
            "columns of a table are of one length", got={n: len(v) for n, v in found.items()}
        )
    return found


def arrow_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows by name as a table of pyarrow; what is of several kinds becomes text."""
    import pyarrow as pa

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns[name] = pa.array([None if value is None else str(value) for value in values])
    return pa.table(columns)


def pandas_frame(table: Any) -> Any:
    """A table of pyarrow as a data frame."""
    try:
        import_module("pandas")
    except ImportError as error:
        raise ConfigError(
            "a data frame needs pandas, which is not installed",
            fix="pip install pandas. Or take `table()` and `curve_table()`, which are of pyarrow.",
        ) from error
    return table.to_pandas()
