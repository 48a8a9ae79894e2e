"""Tables for notebooks, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], about: str = ""
) -> str:
    """A table with a title; everything in it is text.

    Args:
        title: What is above it.
        columns: Their names.
        rows: What is in them.
        about: A sentence below the title.
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(str(value))}</td>' for value in row)}</tr>" for row in rows
    )
    told = f"<p>{escape(about)}</p>" if about else ""
    return (
        f"<p><b>{escape(title)}</b></p>{told}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
