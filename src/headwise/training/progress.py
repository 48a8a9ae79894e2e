"""The display of a run in the terminal: how far, how fast, how well."""

from __future__ import annotations

import math
import time

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from headwise.training.loggers.base import seed_labels
from headwise.training.report import Report

MOST_SEEDS = 10
"""With more seeds than this, the table shows the lowest, the middle and the highest."""
LINE_SECONDS = 30.0
"""Time between lines where the output is a file or a pipe."""

_COLUMNS = {
    "return": "rollout/ep_rew_mean",
    "length": "rollout/ep_len_mean",
    "eval": "eval/mean_return",
    "epsilon": "rollout/exploration_rate",
    "alpha": "train/ent_coef",
}


class Progress:
    """A bar with speed and time left, and a row for each seed; plain lines if not in a terminal.

    Args:
        title: What is being trained.
        console: Where to draw; None is the standard error stream.
    """

    def __init__(self, title: str, console: Console | None = None) -> None:
        self.title = title
        self._console = Console(stderr=True) if console is None else console
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[steps]} steps, {task.fields[speed]}"),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._live = Live(console=self._console, refresh_per_second=4, transient=False)
        self._next_line = 0.0
        self._last: Report | None = None

    def open(self, total: int, step: int) -> None:
        """Begins a run of so many steps, some of which may be done already."""
        steps = f"{step:,} of {total:,}"
        self._task = self._bar.add_task(
            self.title, total=total, completed=step, steps=steps, speed="..."
        )
        if self._console.is_terminal:
            self._live.start()
        self._next_line = time.monotonic() + LINE_SECONDS

    def show(self, report: Report) -> None:
        """Draws the state of things."""
        self._last = report
        speed = f"{report.values['time/fps'][0]:,.0f} steps/s"
        self._bar.update(
            self._task,
            completed=min(report.step, report.total),
            steps=f"{report.step:,} of {report.total:,}",
            speed=speed,
        )
        if self._console.is_terminal:
            self._live.update(Group(self._bar, seeds_table(report)))
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_SECONDS
            self._line(report)

    def close(self) -> None:
        """Leaves the last state standing."""
        self._live.stop()
        if self._last is not None and not self._console.is_terminal:
            self._line(self._last)

    def _line(self, report: Report) -> None:
        returns = report.returns[np.isfinite(report.returns)]
        score = f"return {np.median(returns):.4g}" if len(returns) else "no episode yet"
        if (found := report.values.get("eval/mean_return")) is not None:
            score += f", evaluated {np.median(found):.4g}"
        self._console.print(
            f"{self.title}: {report.step:,} of {report.total:,} steps, "
            f"{report.values['time/fps'][0]:,.0f} steps/s, {score}",
            highlight=False,
        )


def seeds_table(report: Report) -> Table:
    """A row for each seed: its return, and what drives its exploration."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("seed", justify="right")
    shown = {title: name for title, name in _COLUMNS.items() if name in report.values}
    for title in shown:
        table.add_column(title, justify="right", min_width=9)
    labels = dict(enumerate(seed_labels(report.seeds)))
    if len(report.seeds) > MOST_SEEDS:
        order = np.argsort(np.nan_to_num(report.returns, nan=-math.inf))
        places = {"lowest": 0, "middle": len(order) // 2, "highest": len(order) - 1}
        labels = {int(order[at]): word for word, at in places.items()}
    for member, label in labels.items():
        cells = [_number(report.values[name][member]) for name in shown.values()]
        if not report.alive[member]:
            cells.append("[red]diverged")
        table.add_row(label, *cells)
    return table


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "-"
