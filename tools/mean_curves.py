"""Mean learning curves of the sweep whose runs have none stored, out of an earlier report.

    python tools/mean_curves.py                  # writes results/paper_mean_curves.csv
    python tools/mean_curves.py old/report.html  # from a page that lies elsewhere

Of the first 670 runs of the sweep only final numbers are in `results/paper.parquet`. The page that
was made of them (`results/report.html` at commit 4e7dde9) has their curves as data, a mean and a
band for each cell, to four digits; no run's own. The file has what that page has and no more.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from headwise.csv_cells import csv_text
from headwise.study.measures import NUM_POINTS

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "results" / "paper_mean_curves.csv"
SOURCE = "4e7dde9:results/report.html"
TAGS = ("environment", "view", "algorithm")
KINDS = {"mean": "y", "low": "low", "high": "high"}
"""What a row has, and what the page calls it."""


def page() -> str:
    """The report as it was, out of the project's history."""
    return subprocess.run(
        ["git", "show", SOURCE], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def panels_of(html: str) -> Iterator[dict[str, Any]]:
    """The panels of the figures of single environments."""
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    for figure in json.loads(data)["figures"]:
        if figure["name"].startswith("environment-"):
            yield from figure["panels"]


def as_csv(panels: Iterable[dict[str, Any]]) -> str:
    """Three rows for each line that has points: its mean, and the ends of its 95 % interval."""
    names = [*TAGS, "factorization", "runs", "steps", "of"]
    rows: list[list[object]] = []
    for panel in panels:
        for line in panel["series"]:
            if line["num_runs"]:
                what = [*(panel["tags"][tag] for tag in TAGS), line["key"]]
                head = [*what, line["num_runs"], int(panel["x"][-1])]
                rows += [[*head, kind, *line[key]] for kind, key in KINDS.items()]
    rows.sort(key=lambda row: [str(cell) for cell in row[:4]])
    return csv_text([[*names, *range(1, NUM_POINTS + 1)], *rows])


def main(paths: Sequence[str]) -> None:
    """Writes the file."""
    html = Path(paths[0]).read_text(encoding="utf-8") if paths else page()
    TARGET.write_text(as_csv(panels_of(html)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
