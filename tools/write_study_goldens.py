"""Writes `tests/goldens/study.json.gz`: what a tiny study leaves behind, and a page of a report.

    python tools/write_study_goldens.py [contents] [page]

Write a part anew only if it is meant to be different, and say why. The ledger of the paper's claims
is not in it: `tests/test_results.py` makes it from the archives and holds it against
`results/claims.csv`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "study"))
import study_goldens


def main(parts: list[str]) -> None:
    """Writes some of the file's parts, or all of them."""
    kept = study_goldens.read() if study_goldens.FILE.exists() else {}
    if kept and kept["machine"] != study_goldens.machine():
        parts = []  # what is kept was rounded otherwise
    kept["machine"] = study_goldens.machine()
    with tempfile.TemporaryDirectory() as folder:
        if not parts or "contents" in parts:
            kept["contents"] = study_goldens.contents_text(Path(folder) / "study", "inline")
        if not parts or "page" in parts:
            kept["page"] = study_goldens.page_text(Path(folder))
    study_goldens.write(kept)
    print(f"{study_goldens.FILE.name}: {study_goldens.FILE.stat().st_size / 2**10:.0f} KiB")


if __name__ == "__main__":
    main(sys.argv[1:])
