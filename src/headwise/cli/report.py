"""`headwise report`: figures, tables, the claims ledger and one page, from a study's folder."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from headwise.cli.runs import RUNS
from headwise.errors import ConfigError
from headwise.study.load import load_file


@dataclass(frozen=True)
class ReportCommand:
    """Make the report of one or more studies: a web page, figures, tables and a claims ledger."""

    folders: tyro.conf.Positional[tuple[Path, ...]]
    """The studies' folders, or their names in ./runs, or files of `headwise study archive`; several
    may hold parts of one study."""
    out: Path | None = None
    """Folder of the report; `report` in the first study's folder if not given, or NAME/report for
    NAME.parquet."""
    times: Path | None = None
    """Folder or archive of a study to take training times from, for runs that lack them (those of a
    GPU do): results/studies/costs.py of the repository is such a study."""
    means: Path | None = None
    """File of mean learning curves, drawn where a cell's runs have no stored curves:
    results/paper_mean_curves.csv of the repository is one."""
    curves: Path | None = None
    """Folder or archive of the same study with learning curves, of another engine for example; they
    come before means: results/paper_engine2.parquet."""
    scale: Literal["reference", "min-max"] = "reference"
    """Scale of scores in figures and tables: from random play to the best policy known, or, as
    published, from the lowest to the highest point of any curve on a task."""
    bands: Literal["interval", "sem"] = "interval"
    """Bands around learning curves: Student's 95 % intervals, or, as published, standard errors."""
    formats: tuple[Literal["png", "pdf"], ...] = ("png", "pdf")
    """File formats of figures, beside the page."""
    with_: Annotated[tuple[Path, ...], tyro.conf.arg(name="with")] = ()
    """Python files with your own claims, figures and sections; their code is run."""
    all_runs: bool = False
    """Include runs in the folder that are not in the study's current plan."""
    open: bool = False
    """Open the page in a browser when it is ready."""

    def call(self, console: Console) -> int:
        """Writes the report and prints where its page is."""
        try:
            from headwise.report.write import write_report
        except ModuleNotFoundError as error:
            raise ConfigError(
                "a report needs further packages",
                got=f"no {error.name}",
                fix="Install them: pip install 'headwise[report]'.",
            ) from error
        for file in self.with_:
            load_file(file)
        notices: list[str] = []
        with console.status("") as status:
            page = write_report(
                [_found(folder) for folder in self.folders],
                self.out,
                times=None if self.times is None else _found(self.times),
                means=self.means,
                curves=None if self.curves is None else _found(self.curves),
                scale=self.scale,
                bands=self.bands,
                formats=self.formats,
                all_runs=self.all_runs,
                on_progress=status.update,
                on_notice=notices.append,
            )
        for notice in notices:
            console.print(notice, highlight=False, soft_wrap=True, markup=False)
        console.print(f"report: {page}", highlight=False, soft_wrap=True)
        if self.open:
            webbrowser.open(page.resolve().as_uri())
        return 0


def _found(folder: Path) -> Path:
    return RUNS / folder if not folder.exists() and (RUNS / folder).exists() else folder


def main(argv: Sequence[str] | None = None) -> int:
    """`headwise report ...`; returns the exit code."""
    command = tyro.cli(ReportCommand, args=argv, prog="headwise report")
    return command.call(Console(stderr=True))
