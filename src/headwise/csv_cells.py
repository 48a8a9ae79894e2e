"""CSV files whose cells no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
"""The last four are as wide as two letters, and count in East Asian settings."""


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV. Numbers stay what they are; a text that a spreadsheet would run gets a quote.

    Names of environments, heads and labels come from files of others, and `=HYPERLINK(...)` in a
    cell is a link that sends what is around it. With an apostrophe before it, it is text.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")  # a lone \r would begin a row, unquoted
    return f"'{text}" if text.startswith(_BEGINS_A_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
