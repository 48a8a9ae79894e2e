"""A table as data, written as CSV and LaTeX; the page shows the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from headwise.csv_cells import csv_text


@dataclass(frozen=True)
class Table:
    """Columns and rows; numbers stay numbers until they are written."""

    name: str
    """Names its files."""
    section: str
    """The part of the page it belongs to."""
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    row_tags: tuple[dict[str, str], ...] = field(default=())
    """What each row is about, for filters."""


def text_of(value: Any) -> str:
    """An entry for people: four digits, a dash for what is not there."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "\N{EN DASH}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value and abs(value) < 1e-3:
            return f"{value:.1e}"
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)


def interval_text(low: float, high: float) -> str:
    """An interval for people."""
    return f"[{text_of(low)}, {text_of(high)}]"


def to_csv(table: Table) -> str:
    """The table with its numbers in full."""
    return csv_text([table.columns, *table.rows])


def to_latex(table: Table) -> str:
    """The table for a paper; needs the package booktabs."""
    numeric = [
        any(isinstance(row[i], int | float) for row in table.rows)
        for i in range(len(table.columns))
    ]
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{_escape(table.title)}. {_escape(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{''.join('r' if n else 'l' for n in numeric)}}}",
        r"\toprule",
        " & ".join(_escape(column) for column in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(_escape(text_of(value)) for value in row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    "\N{EN DASH}": "--",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
}


def _escape(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)
