"""The report of `results/`: every figure of the sweep, the whole ledger, and the decoupler's part.

    python tools/page.py     # writes results/report.html

The sweep's part is made of the archives. Runs of the decoupler are not stored: their section is
that of the page as it was (`results/report.html` at commit c83729f, engine 1), and their lines of
the ledger are those of `results/claims.csv`.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from headwise.report.claims import Claim, Entry, Evidence, Measurement, Verdict, all_claims
from headwise.report.figures.curves import curve_figures
from headwise.report.figures.figure import Figure
from headwise.report.figures.scores import score_figures
from headwise.report.means import Lender, read_means
from headwise.report.names import PRESETS
from headwise.report.page import render_page
from headwise.report.runs import read_store
from headwise.report.sweeps import sweeps_of
from headwise.report.tables.claims import claims_table, machines_table, runs_table
from headwise.report.tables.scores import comparison_tables, cost_table
from headwise.studies.paper.claims_decoupler import decoupler_claims

RESULTS = Path(__file__).parents[1] / "results"
BEFORE = "c83729f:results/report.html"
_DATA = r'(<script type="application/json" id="data">)(.*?)(</script>)'
_SECTION = r'<section id="contextual-decoupler">.*?</section>'
_LINK = r'<a href="#contextual-decoupler">.*?</a>'


def entries_of(rows: Sequence[dict[str, str]], claims: Sequence[Claim]) -> list[Entry]:
    """The lines of a ledger, from its file and from what it asked, in the same order."""
    found = []
    for row, claim in zip(rows, claims, strict=True):
        if (row["claim"], row["settings"]) != (
            claim.text, PRESETS.get(claim.settings, claim.settings)
        ):  # fmt: skip
            raise SystemExit(f"{row['claim']} is not {claim.text}")
        measured = None
        if row["ours"]:
            ends = row["95 % interval"].strip("[]").split(", ")
            low, high = (float(end.replace(",", "")) for end in ends)
            seeds = int(row["seeds"]) if row["seeds"] else None
            measured = Measurement(float(row["ours"]), low, high, seeds)
        p = float(row["p (Holm)"] or "nan")
        found.append(Entry(claim, Verdict(row["verdict"]), measured, row["note"], p, (), p))
    return found


def page(before: str) -> str:
    """The page's text, with the decoupler's part of an earlier one."""
    store, costs = (read_store(RESULTS / f"{name}.parquet") for name in ("paper", "costs"))
    (sweep,) = sweeps_of(store.name, store.runs, costs.runs, store.failed)
    others = read_store(RESULTS / "paper_engine2.parquet").runs
    lender = Lender.of(read_means(RESULTS / "paper_mean_curves.csv"), others)
    figures: list[Figure] = [*score_figures(sweep), *curve_figures(sweep, lender)]
    with (RESULTS / "claims.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    claims = [*decoupler_claims(), *all_claims(Evidence((), (sweep,)))]
    entries = entries_of(rows, claims)
    tables = [
        claims_table(entries), *comparison_tables(sweep), *cost_table(sweep),
        runs_table([store]), machines_table([store, costs]),
    ]  # fmt: skip
    text = render_page([store], figures, tables, entries)
    return with_part(text, before)


def with_part(text: str, before: str) -> str:
    """A page with the decoupler's section of another one: what is said, and what is drawn."""
    (section,), (link,) = (re.findall(part, before, re.S) for part in (_SECTION, _LINK))
    told = "Runs of engine 1, as the report of 2026-11-19 had them."
    section = section.replace("</p>", f" {told}</p>", 1)
    old, new = (json.loads(re.findall(_DATA, page, re.S)[0][1]) for page in (before, text))
    new["figures"] += [
        figure for figure in old["figures"] if f'data-figure="{figure["name"]}"' in section
    ]
    data = json.dumps(new, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    data = data.replace("<", "\\u003c")
    text = re.sub(_DATA, lambda found: found[1] + data + found[3], text, count=1, flags=re.S)
    text = text.replace('<section id="compute">', section + '\n<section id="compute">', 1)
    return text.replace('<a href="#compute">', link + '<a href="#compute">', 1)


def main() -> None:
    """Writes the page."""
    before = subprocess.run(
        ["git", "show", BEFORE], cwd=RESULTS.parent, check=True, capture_output=True, text=True
    ).stdout
    (RESULTS / "report.html").write_text(page(before), encoding="utf-8")


if __name__ == "__main__":
    main()
