"""`headwise study`: find a plan, run it, see how it stands, export it, archive it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import tyro
from rich.console import Console
from rich.live import Live
from rich.table import Table

from headwise.cli.runs import RUNS
from headwise.cli.standings import runs_table, standing_tables
from headwise.cli.values import parse_pairs
from headwise.errors import ConfigError, StoreError
from headwise.files import write_whole
from headwise.study.archive import read_archive, restore, write_archive
from headwise.study.conductor import Options, conduct, planned_runs, without_checkpoint
from headwise.study.estimate import Cost, estimate
from headwise.study.executors.base import ExecutorSettings, executors
from headwise.study.export import marl_eval_json, results_csv
from headwise.study.imports import imports_of
from headwise.study.load import load_study
from headwise.study.migrate import migrate
from headwise.study.place import choose_place
from headwise.study.planner import Pack, choose, pack_runs
from headwise.study.progress import ConsoleProgress, duration
from headwise.study.source import SHIPPED, question_of, study_files
from headwise.study.status import standings
from headwise.study.store import CHECKPOINT, Store
from headwise.study.study import Study
from headwise.training.matmul_precision import matmul_precision_as
from headwise.upgrade import LAYOUT

WATCH_SECONDS = 2.0
"""Between two looks of `study status --watch`."""


@dataclass(frozen=True)
class RunCommand:
    """Run a study, or resume it: runs that are finished are not repeated."""

    study: tyro.conf.Positional[str]
    """A Python file that defines a study, or the name of one in ./studies or `study list`."""
    out: Path | None = None
    """The study's folder; runs/NAME if not given."""
    smoke: bool = False
    """Smoke test: every cell with a tiny budget."""
    args: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Arguments of the study's function `make`, as NAME=VALUE; may be given several times."""
    dry_run: bool = False
    """Print what would be run and how long it would take, without running it."""
    options: tyro.conf.OmitArgPrefixes[Options] = field(default_factory=Options)

    def call(self, console: Console) -> int:
        """Runs the study; 1 if some run has failed."""
        study = load_study(self.study, **self._arguments())
        folder = self.out or RUNS / study.name
        if self.dry_run:
            with matmul_precision_as(self.options.matmul_precision):
                return _show_plan(console, study, Store(folder), self.options)
        try:
            summary = conduct(study, folder, self.options, ConsoleProgress(study.name, console))
        except KeyboardInterrupt:
            console.print("\nStopped. Finished runs are safe; the same command goes on from here.")
            return 130
        console.print(
            f"{summary.finished} of {summary.asked} runs are finished in {folder}", highlight=False
        )
        if self.options.keep_checkpoints:
            console.print(
                f"{summary.checkpoints} have a checkpoint: {folder}/runs/ID/{CHECKPOINT}",
                highlight=False,
            )
        if summary.elsewhere:
            console.print(f"{summary.elsewhere} are being worked on by another runner")
        if summary.failed:
            console.print(
                f"{summary.failed} failed: see `headwise study status {folder}`; try them again "
                "with --retry-failed"
            )
        return 1 if summary.failed else 0

    def _arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {"smoke": True} if self.smoke else {}
        return arguments | parse_pairs(self.args, "argument of a study")


@dataclass(frozen=True)
class ListCommand:
    """List the studies that can be run by name, and where they are."""

    def call(self, console: Console) -> int:
        """Prints a table."""
        table = Table("study", "question", "where", box=None)
        for name, path in study_files().items():
            where = "the library" if path.parent == SHIPPED else str(path)
            table.add_row(name, question_of(path), where)
        Console().print(table)
        return 0


@dataclass(frozen=True)
class StatusCommand:
    """Show the status of a study: finished, failed, running and pending runs, and checkpoints."""

    folder: tyro.conf.Positional[Path]
    """The study's folder, its name in ./runs, an archive, or the study as `study run` takes it."""
    only: str | None = None
    """A pattern (`*`, `?`) that a run's name or id must contain; several, separated by commas."""
    trace: bool = False
    """Print the tracebacks of failed runs."""
    watch: bool = False
    """Refresh every few seconds until no run is active; Ctrl-C stops."""

    def call(self, console: Console) -> int:
        """Prints tables."""
        store = _store(self.folder)
        runs, name = choose(store.plan(), self.only), store.study()["name"]
        found = standings(store, runs)
        if self.watch:
            with Live(console=console, auto_refresh=False) as live:
                while found.running:
                    live.update(standing_tables(name, found), refresh=True)
                    time.sleep(WATCH_SECONDS)
                    found = standings(store, runs)
        console.print(standing_tables(name, found))
        kept, finished = (
            sum(getattr(r, n) for r in found.rows) for n in ("checkpoints", "finished")
        )
        console.print(f"{kept} of {finished} finished runs have a checkpoint", highlight=False)
        for failure in found.failures:
            console.print(
                f"{failure.run.id} {failure.run.name}\n  {failure.kind}: {failure.message}",
                markup=False,
                highlight=False,
            )
            if self.trace:
                text = store.error(failure.run.id)["traceback"]
                console.print(text, markup=False, highlight=False)
        return 0


@dataclass(frozen=True)
class RunsCommand:
    """List the runs in ./runs, their progress, and how to resume them."""

    folder: tyro.conf.Positional[Path] = RUNS
    """Where to look."""

    def call(self, console: Console) -> int:
        """Prints a table."""
        Console().print(runs_table(self.folder))
        return 0


@dataclass(frozen=True)
class ExportCommand:
    """Write a study's results for other tools."""

    folder: tyro.conf.Positional[Path]
    """The study's folder, its name in ./runs, an archive, or the study as `study run` takes it."""
    format: Literal["marl-eval", "csv"] = "csv"
    """marl-eval: its JSON, learning curves by seed. csv: a row for each run."""
    out: Path | None = None
    """The file to write; printed if not given."""

    def call(self, console: Console) -> int:
        """Writes the file."""
        store = _store(self.folder)
        text = results_csv(store) if self.format == "csv" else marl_eval_json(store)
        if self.out is None:
            print(text, end="")
        else:
            write_whole(self.out, text.encode())
            console.print(f"wrote {self.out}", highlight=False)
        return 0


@dataclass(frozen=True)
class ArchiveCommand:
    """Write a study as one small file for reports: settings, results and learning curves.

    Episodes, metrics and checkpoints stay behind.
    """

    folder: tyro.conf.Positional[Path]
    """The study's folder, its name in ./runs, an archive, or the study as `study run` takes it."""
    out: Path | None = None
    """The file to write; NAME.parquet if not given."""

    def call(self, console: Console) -> int:
        """Writes the file."""
        store = _store(self.folder)
        path = self.out or Path(f"{store.study()['name']}.parquet")
        with _counting(console, "reading run") as tell:
            write_archive(store, path, tell)
        written = read_archive(path)  # counted as it can be read
        ids = written.run_ids()
        console.print(
            f"wrote {path}: {sum(map(written.is_finished, ids)):,} of {len(ids):,} runs, "
            f"{path.stat().st_size / 1e3:,.0f} kB",
            highlight=False,
        )
        return 0


@dataclass(frozen=True)
class RestoreCommand:
    """Restore the runs of archived studies into a folder, as finished runs.

    `headwise study run` goes on with what is missing, and `headwise report` reads the folder. Files
    of one study that was run in several places go into one folder.
    """

    files: tyro.conf.Positional[tuple[Path, ...]]
    """Files that `headwise study archive` wrote."""
    out: Path | None = None
    """The study's folder; runs/NAME if not given."""

    def call(self, console: Console) -> int:
        """Fills the folder."""
        if not self.files:
            raise ConfigError("nothing to restore", got="no file", allowed="one or more")
        for path in self.files:
            archive = read_archive(path)
            folder = self.out or RUNS / archive.study()["name"]
            store = Store(folder)
            with _counting(console, "writing run") as tell:
                new = restore(archive, store, tell)
            done = sum(store.is_finished(run.id) for run in store.plan())
            console.print(
                f"{path}: {new:,} new runs; {done:,} are finished in {folder}", highlight=False
            )
        return 0


@dataclass(frozen=True)
class MigrateCommand:
    """Upgrade a study's folder of an earlier version to the current names of settings.

    Runs get other ids, since an id is the hash of the settings; their results stay as they are.
    """

    folder: tyro.conf.Positional[Path]
    """The study's folder, or its name in ./runs."""

    def call(self, console: Console) -> int:
        """Renames the settings and the folders of runs."""
        folder = _store(self.folder).folder
        before, renamed = migrate(folder)
        console.print(
            f"{folder} has layout {before} already: nothing to do"
            if before == LAYOUT
            else f"{folder}: layout {before} became {LAYOUT}, {len(renamed):,} runs were renamed",
            highlight=False,
        )
        for old, new in renamed.items():
            console.print(f"{old} is {new}", highlight=False)
        return 0


Command: TypeAlias = (
    Annotated[RunCommand, tyro.conf.subcommand("run")]
    | Annotated[ListCommand, tyro.conf.subcommand("list")]
    | Annotated[StatusCommand, tyro.conf.subcommand("status")]
    | Annotated[RunsCommand, tyro.conf.subcommand("runs")]
    | Annotated[ExportCommand, tyro.conf.subcommand("export")]
    | Annotated[ArchiveCommand, tyro.conf.subcommand("archive")]
    | Annotated[RestoreCommand, tyro.conf.subcommand("restore")]
    | Annotated[MigrateCommand, tyro.conf.subcommand("migrate")]
)


def main(argv: Sequence[str] | None = None) -> int:
    """`headwise study ...`; returns the exit code."""
    command: Any = tyro.cli(
        Command,
        args=argv,
        prog="headwise study",
        description="A plan of runs as one file: environments x views x algorithms x "
        "factorizations x seeds.",
    )
    code: int = command.call(Console(stderr=True))
    return code


def _store(folder: Path) -> Store:
    """The store in a folder, by its path or its name in ./runs, or that of a study or its file."""
    for found in (folder, RUNS / folder):
        if (found / "study.json").exists() or (found.suffix == ".parquet" and found.is_file()):
            return Store(found)
    if folder.suffix != ".py" and str(folder) not in study_files():
        return Store(folder)  # which says that there is none
    name = load_study(folder).name
    if not (RUNS / name / "study.json").exists():
        raise StoreError(
            f"the study {name!r} has no folder yet",
            got=str(RUNS / name),
            fix=f"`headwise study run {folder}` makes it; if it is elsewhere, give its path.",
        )
    return Store(RUNS / name)


@contextmanager
def _counting(console: Console, doing: str) -> Iterator[Callable[[int, int], None]]:
    """A line that says how many of how many are done, for as long as it takes."""
    with console.status("") as status:
        yield lambda done, of: status.update(f"{doing} {done + 1:,} of {of:,}")


def _show_plan(console: Console, study: Study, store: Store, options: Options) -> int:
    """Prints what would be done; 1 if some run would fail for sure."""
    runs = planned_runs(study, store, options)
    place = choose_place(options.executor, options.device, runs, store, options.max_members)
    settings = ExecutorSettings(
        options.workers, options.address, place.device, imports=imports_of(study, runs)
    )
    workers = executors.get(place.executor)(settings).num_workers
    packs = pack_runs(runs, options.max_members, workers)
    left = [r for r in runs if store.is_open(r.id, retry_failed=options.retry_failed)]
    failed = sum(store.is_failed(r.id) and (r in left) is options.retry_failed for r in runs)
    again = "tried again" if options.retry_failed else "left alone without --retry-failed"
    console.print(
        f"{study.name}: {len(runs)} runs in {len(packs)} populations, {len(left)} to do"
        + (f"; {failed} have failed and are {again}" if failed else ""),
        highlight=False,
    )
    if options.keep_checkpoints and (missed := without_checkpoint(store, runs)):
        console.print(missed, highlight=False)
    with console.status("") as status:

        def tell(pack: Pack) -> None:
            status.update(f"measuring {pack.runs[0].cell}")

        costs, hopeless = estimate(
            runs, left, store, options.max_members, workers, tell, place.device
        )
    if place.why:
        console.print(place.why, markup=False, highlight=False)
    if place.device == "cpu":
        _show_costs(console, costs, workers, f"{workers} cores like this one")
    else:  # what streams gain is not known before they run
        _show_costs(console, costs, 1, f"{place.device}, one population at a time", "steps/s")
    for cell in hopeless:
        console.print(
            f"would fail: {cell.cell}, {cell.runs} runs: {cell.why}", markup=False, highlight=False
        )
    return 1 if hopeless else 0


def _show_costs(
    console: Console, costs: list[Cost], workers: int, where: str, rate: str = "steps/s/core"
) -> None:
    table = Table("environment", "algorithm", title=f"cost on {where}")
    for name in ("runs", "steps", rate, "time"):
        table.add_column(name, justify="right")
    total = Cost("all", "", *(sum(getattr(c, f.name) for c in costs) for f in _NUMBERS))
    for cost in (*costs, total):
        if cost is total:
            table.add_section()
        table.add_row(
            cost.environment,
            cost.algorithm,
            f"{cost.runs:,}",
            f"{cost.steps:,}",
            f"{cost.rate:,.0f}" if cost.seconds else "",
            duration(cost.seconds / workers),
        )
    console.print(table)


_NUMBERS = dataclasses.fields(Cost)[2:]
