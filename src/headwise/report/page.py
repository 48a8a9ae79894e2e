"""The report as one self-contained HTML page: data, style and script are all in the file.

Charts are drawn by some 300 lines of our own script, because a plotting library would add 4 MB to
every report for the few kinds of figure that there are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template
from types import MappingProxyType
from typing import Any

from headwise.report.claims import Entry, Verdict
from headwise.report.figures.figure import Figure, plain
from headwise.report.names import (
    ALGORITHMS,
    FACTORIZATIONS,
    VIEWS,
    algorithm_name,
    color,
    factorization_name,
    in_order,
    slug,
    view_name,
)
from headwise.report.registry import extensions
from headwise.report.runs import StudyRuns
from headwise.report.tables.table import Table, text_of

SECTIONS = (
    "Claims",
    "Scores",
    "Tables",
    "Learning curves",
    "Compute",
    "Runs",
)
"""The parts of a page, in their order; what extensions and users add stands before the last two."""
_VERDICT_CLASS = {
    Verdict.HOLDS: "holds",
    Verdict.FAILS: "fails",
    Verdict.ALIKE: "alike",
    Verdict.UNDECIDED: "open",
    Verdict.MISSING: "none",
}
_ABOUT = {
    "Claims": "The paper's claims, and whether these runs support them.",
    "Scores": "Final scores over seeds, and tests of their differences.",
    "Learning curves": "Returns over training.",
    "Compute": "Parameters, floating-point operations and training times.",
    "Tables": "Returns of every cell, unscaled.",
    "Runs": "The runs in this report.",
}


def render_page(
    stores: Sequence[StudyRuns],
    figures: Sequence[Figure],
    tables: Sequence[Table],
    entries: Sequence[Entry],
    formats: Sequence[str] = (),
    abouts: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The page's text.

    Args:
        stores: What it is about.
        figures: All of them.
        tables: All of them.
        entries: The ledger.
        formats: The files beside it that figures link to.
        abouts: What is said in sections of users, by name.
    """
    names = [store.name for store in stores]
    data = {
        "figures": [plain(figure) for figure in figures],
        "colors": {key: color(key) for key in sorted(_keys(figures))},
        "filters": _filters(stores),
    }
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    asked = dict.fromkeys(store.about for store in stores if store.about)
    full = {*(figure.section for figure in figures), *(table.section for table in tables)}
    told = {**_ABOUT, **dict(pair for one in extensions() for pair in one.sections.items())}
    others = [name for name in told if name not in SECTIONS]
    mine = [*abouts, *sorted(full.difference(SECTIONS, told, abouts))]
    order = (*SECTIONS[:-2], *others, SECTIONS[-2], *mine, SECTIONS[-1])
    parts = [name for name in order if name in full or abouts.get(name)]
    told |= abouts
    return Template(_asset("page.html")).substitute(
        title=escape("Headwise report: " + ", ".join(names)),
        version=escape(version("headwise")),
        about=escape(" ".join(asked)),
        notice=_notice(stores),
        tiles=_tiles(stores, entries),
        parts="".join(f'<a href="#{slug(name)}">{escape(name)}</a>' for name in parts),
        body="\n".join(
            _section(name, told.get(name, ""), figures, tables, formats) for name in parts
        ),
        data=text.replace("<", "\\u003c"),  # a name could otherwise end the script
        style=_asset("page.css"),
        script=_asset("charts.js") + _asset("page.js"),
    )


def _asset(name: str) -> str:
    return (files("headwise.report") / "assets" / name).read_text(encoding="utf-8")


def _keys(figures: Sequence[Figure]) -> set[str]:
    """Everything that has a color."""
    parts = ("series", "dots", "points")
    return {
        item.key
        for figure in figures
        for panel in figure.panels
        for part in parts
        for item in getattr(panel, part, ())
    }


def _filters(stores: Sequence[StudyRuns]) -> list[dict[str, Any]]:
    runs = [run for store in stores for run in store]
    views = in_order((run.view for run in runs), VIEWS)
    algorithms = in_order((run.algorithm for run in runs), ALGORITHMS)
    factors = in_order((run.factorization for run in runs), FACTORIZATIONS)
    tasks = sorted({run.task for run in runs})
    return [
        {"name": "environment", "title": "Environment", "values": [(t, t) for t in tasks]},
        {"name": "view", "title": "Actions", "values": [(v, view_name(v)) for v in views]},
        {
            "name": "algorithm",
            "title": "Algorithm",
            "values": [(a, algorithm_name(a)) for a in algorithms],
        },
        {
            "name": "factorization",
            "title": "Factorization",
            "values": [(f, factorization_name(f)) for f in factors],
        },
    ]


def _tiles(stores: Sequence[StudyRuns], entries: Sequence[Entry]) -> str:
    runs = [run for store in stores for run in store]
    planned = sum(store.num_planned for store in stores)
    failed = sum(len(store.failures) for store in stores)
    damaged = sum(len(store.damaged) for store in stores)
    tiles = [
        (f"{len(runs):,} of {planned:,}", "runs finished"),
        (f"{failed:,}", "runs failed"),
        *([(f"{damaged:,}", "runs cannot be read")] if damaged else []),
        (f"{len({run.seed for run in runs}):,}", "seeds"),
        (f"{sum(run.steps for run in runs):,}", "environment steps"),
    ]
    for verdict in Verdict if entries else ():
        count = sum(entry.verdict == verdict for entry in entries)
        tiles.append((f"{count}", f"claims: {verdict}"))
    return "".join(f"<li><b>{escape(n)}</b><span>{escape(t)}</span></li>" for n, t in tiles)


def _notice(stores: Sequence[StudyRuns]) -> str:
    """What a reader must know first: that there is nothing yet, or that runs are left out."""
    lines = [f"Of {store.name}: {text}." for store in stores for text in left_out(store)]
    lines += [f"Of {store.name}: {text}." for store in stores if (text := made_on(store))]
    if not any(store.runs for store in stores):
        lines.append("No run has finished yet.")
    return "".join(f'<p class="missing">{escape(line)}</p>' for line in lines)


def made_on(store: StudyRuns) -> str:
    """On what kinds of device the runs of a store were made; nothing if all were made alike."""
    counts = Counter(run.made or "not known" for run in store)
    if len(counts) < 2:
        return ""
    kinds = ", ".join(f"{count:,} on {made}" for made, count in sorted(counts.items()))
    return (
        "runs were made on several kinds of device, with products of several precisions or by "
        f"several engines ({kinds}); no cell mixes them, and comparisons that do say so"
    )


def left_out(store: StudyRuns) -> list[str]:
    """How many runs of a store the report leaves out and why; nothing if there are none."""
    told = []
    if store.num_beside:
        told.append(
            f"{_runs(store.num_beside, 'finished run')} not in the plan as it is now, and left "
            "out; `headwise report --all-runs` counts them in"
        )
    if store.damaged:
        names = ", ".join(run.id for run in store.damaged[:3])
        told.append(
            f"{_runs(len(store.damaged), 'run')} left out that cannot be read: {names}"
            + (", ..." if len(store.damaged) > 3 else "")
        )
    return told


def _runs(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count:,} {what}s are"


def _section(
    name: str,
    about: str,
    figures: Sequence[Figure],
    tables: Sequence[Table],
    formats: Sequence[str],
) -> str:
    blocks = [_figure(figure, formats) for figure in figures if figure.section == name]
    blocks += [_table(table) for table in tables if table.section == name]
    body = "\n".join(blocks)
    return (
        f'<section id="{slug(name)}"><h2>{escape(name)}</h2>'
        f'<p class="caption">{escape(about)}</p>\n{body}\n</section>'
    )


def _figure(figure: Figure, formats: Sequence[str]) -> str:
    links = " ".join(
        f'<a href="figures/{figure.name}.{kind}">{kind.upper()}</a>' for kind in formats
    )
    empty = "" if figure.panels else '<p class="missing">Not yet measured.</p>'
    return (
        f'<div class="block"><h3>{escape(figure.title)}</h3>'
        f'<p class="caption">{escape(figure.caption)} {links}</p>'
        f'<figure data-figure="{figure.name}"><div class="panels"></div>{empty}</figure></div>'
    )


def _table(table: Table) -> str:
    claims = table.name == "claims"
    numeric = [
        any(isinstance(row[i], int | float) for row in table.rows)
        for i in range(len(table.columns))
    ]
    head = "".join(
        f'<th scope="col"{_class(n)}>{escape(column)}</th>'
        for column, n in zip(table.columns, numeric, strict=True)
    )
    tags: Sequence[dict[str, str] | None] = table.row_tags or [None] * len(table.rows)
    body = "".join(
        _row(row, tag, numeric, claims) for row, tag in zip(table.rows, tags, strict=True)
    )
    links = " ".join(
        f'<a href="tables/{table.name}.{kind}">{label}</a>'
        for kind, label in (("csv", "CSV"), ("tex", "LaTeX"))
    )
    pick = '<div class="pick"></div>' if claims else ""
    return (
        f'<div class="block{" claims" if claims else ""}"><h3>{escape(table.title)}</h3>'
        f'<p class="caption">{escape(table.caption)} {links}</p>{pick}'
        f'<div class="scroll"><table id="table-{table.name}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></div>"
    )


def _row(
    row: tuple[Any, ...], tags: dict[str, str] | None, numeric: Sequence[bool], claims: bool
) -> str:
    attribute = ""
    if tags:
        kind = "claim" if claims else "tags"
        attribute = f' data-{kind}="{escape(json.dumps(tags, sort_keys=True))}"'
    cells = []
    for value, is_number in zip(row, numeric, strict=True):
        text = escape(text_of(value))
        if claims and value in _VERDICT_CLASS:
            text = f'<span class="verdict {_VERDICT_CLASS[Verdict(value)]}">{text}</span>'
        exact = f' data-value="{value!r}"' if isinstance(value, int | float) else ""
        cells.append(f"<td{_class(is_number, len(text_of(value)))}{exact}>{text}</td>")
    return f"<tr{attribute}>{''.join(cells)}</tr>"


def _class(is_number: bool, length: int = 0) -> str:
    """Numbers are set to the right; what is short is not broken into lines."""
    return ' class="number"' if is_number else ' class="short"' if 0 < length < 24 else ""
