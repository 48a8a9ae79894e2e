"""The tables of RESULTS.md, each between markers, so that a run renews its own and no other.

What is written by hand about a table stands after its end marker, where no run touches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def renew(section: str, text: str, path: Path = RESULTS) -> None:
    """Puts text between the markers of a section, which is added if it is not there.

    The rest of the file stays as it is.
    """
    begin, end = f"<!-- {section}: begin -->", f"<!-- {section}: end -->"
    old = path.read_text() if path.exists() else "# Results\n"
    if begin not in old:
        old = f"{old.rstrip()}\n\n{begin}\n{end}\n"
    before, _, rest = old.partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}")
