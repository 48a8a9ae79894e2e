"""How a study goes, for people: a live bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from headwise.study.planner import Pack
from headwise.study.run import Run

_LINE_EVERY = 30.0
"""Seconds between two lines where there is no terminal."""


class StudyProgress:
    """Counts what happens; a context manager. Shows nothing by itself."""

    def __init__(self) -> None:
        self.total = self.done = self.failures = self.elsewhere = 0
        self.steps_total = 0
        """Environment steps to take from now on, over all runs."""
        self._steps_of_done = 0
        self._under_way: dict[str, int] = {}
        self._begun = time.monotonic()

    def __enter__(self) -> StudyProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self.show(last=True)

    @property
    def steps(self) -> int:
        """Environment steps taken so far, over all runs."""
        return self._steps_of_done + sum(self._under_way.values())

    @property
    def rate(self) -> float:
        """Environment steps per second."""
        return self.steps / max(time.monotonic() - self._begun, 1e-9)

    def begin(self, left: Sequence[Run], total: int) -> None:
        """What is to be done, of how many runs in all."""
        self.total, self.done = total, total - len(left)
        self.steps_total = sum(run.total_timesteps for run in left)
        self._begun = time.monotonic()
        self.show()

    def started(self, pack: Pack) -> None:
        """A pack has gone to a worker."""
        self._under_way[pack.id] = 0

    def stepped(self, pack: Pack, steps: int, returns: Sequence[float] = ()) -> None:
        """A pack's members have taken that many steps, and earn so much in their last episodes."""
        self._under_way[pack.id] = steps * len(pack.runs)
        self.show()

    def finished(self, pack: Pack) -> None:
        """A pack is done."""
        self._under_way.pop(pack.id, None)
        self._steps_of_done += pack.steps * len(pack.runs)
        self.done += len(pack.runs)
        self.elsewhere = 0
        self.show()

    def dropped(self, pack: Pack) -> None:
        """A pack was lost, or crashed; its runs come again by themselves."""
        self._under_way.pop(pack.id, None)
        self.show()

    def failed(self, run: Run, message: str) -> None:
        """A run has failed for good."""
        self.failures += 1
        self.say(f"failed: {run.name} ({run.id}): {message}")
        self.show()

    def waiting(self, runs: int) -> None:
        """Only other runners' runs are left."""
        self.elsewhere = runs
        self.show()

    def say(self, text: str) -> None:
        """A line that stays."""

    def show(self, *, last: bool = False) -> None:
        """Brings the picture up to date."""

    def _state(self) -> str:
        parts = [f"{self.done}/{self.total} runs"]
        if self.failures:
            parts.append(f"{self.failures} failed")
        if self.elsewhere:
            parts.append(f"waiting for {self.elsewhere} of another runner")
        return ", ".join(parts)


class ConsoleProgress(StudyProgress):
    """A live bar where there is a terminal, a line now and then where there is none."""

    def __init__(self, name: str, console: Console | None = None) -> None:
        super().__init__()
        self.name = name
        self.console = console or Console(stderr=True)
        self._live: Progress | None = None
        self._task = TaskID(0)
        self._said = 0.0
        self._last = ""

    def __enter__(self) -> StudyProgress:
        if self.console.is_terminal:
            self._live = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[state]}"),
                TextColumn("{task.fields[rate]}"),
                TimeElapsedColumn(),
                TextColumn("ETA"),
                TimeRemainingColumn(),
                console=self.console,
                speed_estimate_period=300.0,
            )
            self._live.start()
            self._task = self._live.add_task(self.name, total=None, state="", rate="")
        return self

    def __exit__(self, *_: object) -> None:
        self.show(last=True)
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """A line that stays."""
        self.console.print(text, markup=False, highlight=False)

    def show(self, *, last: bool = False) -> None:
        """Brings the bar up to date, or prints a line if the last one is some time ago."""
        rate = f"{self.rate:,.0f} steps/s" if self.steps else ""
        if self._live is not None:
            self._live.update(
                self._task,
                completed=self.steps,
                total=self.steps_total,
                state=self._state(),
                rate=rate,
            )
        elif last or time.monotonic() - self._said >= _LINE_EVERY:
            self._said = time.monotonic()
            left = (self.steps_total - self.steps) / self.rate if self.steps else 0.0
            eta = f", {duration(left)} left" if left > 0 and not last else ""
            line = f"{self.name}: {self._state()}" + (f", {rate}" if rate else "") + eta
            if line != self._last:  # where nothing was left to do
                self._last = line
                self.say(line)


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
