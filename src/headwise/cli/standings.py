"""How studies and runs stand, as tables on a terminal."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

from rich.console import Group
from rich.table import Table

from headwise.cli.runs import CHECKPOINT
from headwise.errors import HeadwiseError
from headwise.study.source import study_files
from headwise.study.status import Standings
from headwise.study.store import Store

_COUNTS = ("finished", "failed", "running", "left")
_MOST = 20
"""Runs under way that are shown."""


def standing_tables(name: str, found: Standings) -> Group:
    """A study by environment and algorithm, and what is under way.

    Args:
        name: The study's.
        found: How it stands.
    """
    table = Table("environment", "algorithm", title=name)
    for column in (*_COUNTS, "mean return"):
        table.add_column(column, justify="right")
    for row in found.rows:
        numbers = (str(getattr(row, count) or "") for count in _COUNTS)
        table.add_row(row.environment, row.algorithm, *numbers, _number(row.mean_score))
    table.add_section()
    sums = [str(sum(getattr(row, count) for row in found.rows)) for count in _COUNTS]
    table.add_row("all", "", *sums, "")
    told = [one for one in found.running if one.so_far is not None]
    if not told:
        return Group(table)
    running = Table("under way", title="the first of them" if len(told) > _MOST else None)
    for column in ("steps", "of", "return so far"):
        running.add_column(column, justify="right")
    for run, so_far in told[:_MOST]:
        assert so_far is not None
        mean = math.nan if so_far.mean_return is None else so_far.mean_return
        running.add_row(run.name, f"{so_far.step:,}", f"{run.total_timesteps:,}", _number(mean))
    return Group(table, running)


def runs_table(folder: Path) -> Table:
    """The studies and the trained agents in a folder, and the commands that go on with them."""
    table = Table("folder", "what", "how far", "to go on", box=None)
    known = study_files()
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        named = str(path)
        if (path / "study.json").is_file():
            table.add_row(named, "study", *_study(path, known))
        elif (path / CHECKPOINT).is_file():
            table.add_row(
                named, "run", _steps(path / CHECKPOINT), f"headwise train --resume {_q(named)}"
            )
    return table


def _study(path: Path, known: dict[str, Path]) -> tuple[str, str]:
    """How far a study is, and the command that goes on with it."""
    try:
        store = Store(path)
        plan = [str(entry["id"]) for entry in store.study()["plan"]]
        name = str(store.study()["name"])
    except HeadwiseError as error:
        return str(error), ""
    finished = sum(map(store.is_finished, plan))
    far = f"{finished:,} of {len(plan):,} runs"
    if finished == len(plan):
        return far, f"done: headwise report {_q(str(path))}"
    out = "" if path.name == name else f" --out {_q(str(path))}"
    return far, f"headwise study run {name if name in known else 'FILE'}{out}"


def _steps(checkpoint: Path) -> str:
    """How far a run is, by its checkpoint."""
    from headwise.agent.storage import held_steps

    try:
        return f"{held_steps(checkpoint):,} steps"
    except HeadwiseError as error:
        return str(error)


def _q(path: str) -> str:
    return shlex.quote(path)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"
