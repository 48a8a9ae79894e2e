"""Makes a report: figures, tables and the page, from one store or several."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar, get_args

from headwise.errors import ConfigError
from headwise.files import replace_file
from headwise.registry import unknown
from headwise.report.cells import cells_of, lost_of
from headwise.report.claims import Entry, Evidence, all_claims, ledger
from headwise.report.figures.curves import curve_figures
from headwise.report.figures.figure import Figure
from headwise.report.figures.paper import FORMATS, save
from headwise.report.figures.scores import score_figures
from headwise.report.figures.together import with_errors
from headwise.report.means import Lender, read_means
from headwise.report.own import own_abouts, own_claims, own_figures
from headwise.report.page import left_out, render_page
from headwise.report.registry import extensions
from headwise.report.results import Results
from headwise.report.runs import StudyRuns, pooled, read_store
from headwise.report.sweeps import sweeps_of
from headwise.report.tables.claims import (
    claims_table,
    failures_table,
    machines_table,
    runs_table,
)
from headwise.report.tables.damaged import damaged_table
from headwise.report.tables.scores import comparison_tables, cost_table, score_table
from headwise.report.tables.table import Table, to_csv, to_latex
from headwise.study.records import Record

CONTENTS = "contents.txt"
"""Lists the files of a report, so that the next one can take away what it no longer has."""

Scale: TypeAlias = Literal["reference", "min-max"]
"""From random play to the best policy known, or from the lowest to the highest point of a task."""
Bands: TypeAlias = Literal["interval", "sem"]
"""Student's 95 % intervals, or standard errors of the mean."""
SCALES: tuple[Scale, ...] = get_args(Scale)
BANDS: tuple[Bands, ...] = get_args(Bands)

_OWN = re.compile(r"index\.html|(figures|tables)/[\w-]+\.[a-z]+")


def write_report(
    folders: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    times: str | Path | None = None,
    means: str | Path | None = None,
    curves: str | Path | None = None,
    scale: Scale = "reference",
    bands: Bands = "interval",
    formats: Sequence[str] = FORMATS,
    all_runs: bool = False,
    on_progress: Callable[[str], None] | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> Path:
    """Writes the report of one study, or of several together; returns the page's path.

    Args:
        folders: The studies' folders or archives; several may hold parts of one study.
        out: Where to; `report` in the first folder if not given. For an archive that is the folder
            of its name, beside it.
        times: The folder or archive of a study whose times count instead of the runs' own, which
            they lack if they were trained on a GPU: those of runs that differ in seed and steps
            alone.
        means: A file of mean learning curves, for figures of cells whose runs have none stored.
        curves: The folder or archive of the same study with such curves, by another engine, say:
            they come before `means`. No score and no claim counts either.
        scale: Of scores in figures and tables; "min-max" is the paper's, which the ledger has.
        bands: Around learning curves; "sem" is the paper's.
        formats: Files to draw figures into: png, pdf. Without any: the page and the tables.
        all_runs: Whether runs count that are in a folder and not in its plan.
        on_progress: Told what is being done.
        on_notice: Told what the reader of the report should know.
    """
    paths = [folders] if isinstance(folders, str | Path) else list(folders)
    if not paths:
        raise ConfigError("a report needs the folder of a study", got="none")
    tell, note = on_progress or (lambda _: None), on_notice or (lambda _: None)
    for name, got, allowed in (("scale", scale, SCALES), ("bands", bands, BANDS)):
        if got not in allowed:
            raise unknown(f"{name} of a report", got, allowed)
    lent = None if means is None else read_means(means)
    tell("reading runs")
    stores = pooled(read_store(path, all_runs=all_runs) for path in paths)
    timing = [] if times is None else [read_store(times)]
    for store in (*stores, *timing):
        for told in left_out(store):
            note(f"{store.name}: {told}")
    first = Path(paths[0])
    target = (first.with_suffix("") if first.is_file() else first) / "report"
    target = target if out is None else Path(out)

    lender = Lender.of(lent, () if curves is None else read_store(curves).runs)
    evidence = gather(stores, [run for store in timing for run in store])
    evidence = replace(
        evidence, sweeps=tuple(replace(s, by_range=scale == "min-max") for s in evidence.sweeps)
    )
    results = Results.of_stores(stores)
    tell("drawing figures")
    drawn = [*_figures(evidence, lender), *own_figures(results)]
    figures = unique(map(with_errors, drawn) if bands == "sem" else drawn)
    tell("judging claims")
    mine = list(own_claims(results))
    papers = ledger(all_claims(evidence), evidence)
    if not any(entry.measurement for entry in papers):
        papers = []  # of what these runs are about the paper says nothing
    entries = papers if not mine else ledger([*mine, *(one.claim for one in papers)], evidence)
    abouts = own_abouts(results)
    tables = unique(_tables(stores, timing, evidence, entries))

    try:
        old = _previous(target)
        for part in ("figures", "tables"):
            (target / part).mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        for place, figure in enumerate(figures):
            tell(f"writing figure {place + 1} of {len(figures)}")
            written += save(figure, target / "figures", formats)
        for table in tables:
            for kind, text in (("csv", to_csv(table)), ("tex", to_latex(table))):
                written.append(_write(target / "tables" / f"{table.name}.{kind}", text))
        text = render_page(stores, figures, tables, entries, formats, abouts)
        page = _write(target / "index.html", text)
        names = sorted(path.relative_to(target).as_posix() for path in (*written, page))
        _write(target / CONTENTS, "\n".join(names) + "\n")
        for name in sorted(old - set(names)):
            (target / name).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            "cannot write the report",
            got=str(error),
            fix="Give another folder with --out, or make room in this one.",
        ) from error
    return page


def gather(stores: Iterable[StudyRuns], timed: Sequence[Record] = ()) -> Evidence:
    """The runs of stores, sorted by what can be asked of them; `timed` runs lend their times."""
    special: list[object] = []
    sweeps = []
    for store in stores:
        takers = [extension for extension in extensions() if extension.takes(store)]
        if takers:
            special += takers[0].read(store)
        else:
            sweeps += sweeps_of(store.name, store.runs, timed, store.failed)
    return Evidence(tuple(special), tuple(sweeps))


def _figures(evidence: Evidence, lender: Lender) -> Iterable[Figure]:
    for sweep in evidence.sweeps:
        yield from score_figures(sweep)
        yield from curve_figures(sweep, lender)
    for extension in extensions():
        yield from extension.figures(evidence)


Named = TypeVar("Named", Figure, Table)


def unique(things: Iterable[Named]) -> list[Named]:
    """Figures or tables of which no two have the same name, and so the same files."""
    found: dict[str, Named] = {}
    for thing in things:
        name, number = thing.name, 2
        while name in found:
            name, number = f"{thing.name}-{number}", number + 1
        found[name] = replace(thing, name=name)
    return list(found.values())


def _tables(
    stores: Sequence[StudyRuns],
    timing: Sequence[StudyRuns],
    evidence: Evidence,
    entries: Sequence[Entry],
) -> Iterable[Table]:
    if entries:
        yield claims_table(entries)
    for extension in extensions():
        yield from extension.tables(evidence)
    for sweep in evidence.sweeps:
        yield from comparison_tables(sweep)
        yield from cost_table(sweep)
    for store in stores:
        if store.runs:
            cells = cells_of(store.runs, failed=store.failed)
            yield score_table(store.name, cells, lost_of(store.runs, store.failed))
    yield runs_table(stores)
    failures = failures_table(stores)
    if failures is not None:
        yield failures
    yield from damaged_table([*stores, *timing])
    yield machines_table([*stores, *timing])


def _previous(target: Path) -> set[str]:
    """The files of the report that is there already; no other is believed to be its own."""
    path = target / CONTENTS
    names = path.read_text().splitlines() if path.is_file() else []
    return {name for name in names if _OWN.fullmatch(name)}


def _write(path: Path, text: str) -> Path:
    replace_file(path, text.encode())
    return path
