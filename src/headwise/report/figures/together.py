"""What may stand side by side in a figure: lines over the same tasks, runs of equal steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from headwise.report.cells import Band, Cell
from headwise.report.figures.figure import Figure, Lines, Series
from headwise.report.sweep import Sweep

BAND = "Bands: 95 % intervals of the mean over seeds (Student's); a single seed has none."
SEM = "Bands: a standard error of the mean over seeds to both sides; a single seed has none."

Line = TypeVar("Line", bound=Hashable)
Key = Callable[[Cell], tuple[str, ...]]


def task_of(cell: Cell) -> tuple[str, ...]:
    """What counts as a task where action types are pooled."""
    return (cell.task, cell.view)


@dataclass(frozen=True)
class Together(Generic[Line]):
    """The lines of a panel, over the same tasks as far as there are such."""

    cells: Mapping[Line, Sequence[Cell]]
    title: str = ""
    """What is to be added to the panel's title."""
    words: Mapping[Line, str] = field(default_factory=dict)
    """What is to be added to the names of lines."""


def together(lines: Mapping[Line, Sequence[Cell]], key: Key = task_of) -> Together[Line]:
    """Leaves to each line the tasks that all lines have; where there are none, each says its own.

    Args:
        lines: The cells of each line.
        key: What counts as a task.
    """
    tasks = [{key(cell) for cell in cells} for cells in lines.values()]
    every = set().union(*tasks)
    common = set.intersection(*tasks) if tasks else set()
    if not common:
        return Together(lines, words=counted(lines, key))
    kept = {name: [c for c in cells if key(c) in common] for name, cells in lines.items()}
    title = f": {len(common)} of {len(every)} tasks" if len(common) < len(every) else ""
    return Together(kept, title, dict.fromkeys(lines, ""))


def counted(lines: Mapping[Line, Sequence[Cell]], key: Key = task_of) -> dict[Line, str]:
    """For each line over fewer tasks than there are, how many it is over."""
    tasks = {name: {key(cell) for cell in cells} for name, cells in lines.items()}
    every = len(set().union(*tasks.values()))
    return {
        name: f" ({len(mine)} of {every} tasks)" if len(mine) < every else ""
        for name, mine in tasks.items()
    }


def counts_note(words: Iterable[str]) -> str:
    """What `counted` has put beside names, explained, with a space before it, if anything."""
    if not any(words):
        return ""
    return " A name with a number of tasks is over those alone: it does not compare with others."


def steps_note(cells: Iterable[Cell], by: Sequence[str] = ("task", "view", "algorithm")) -> str:
    """A sentence where runs are set side by side that had unequal steps, with a space before it.

    Args:
        cells: What is in the figure.
        by: What cells that are set side by side are alike in.
    """
    steps: dict[tuple[str, ...], set[int]] = {}
    for cell in cells:
        key = tuple(str(getattr(cell, name)) for name in by)
        steps.setdefault(key, set()).add(cell.steps)
    unequal = {key: found for key, found in steps.items() if len(found) > 1}
    if not unequal:
        return ""
    key, found = min(unequal.items())
    return (
        f" Not at equal steps: {len(unequal)} of {len(steps)} comparisons set runs of different "
        f"length side by side ({', '.join(key)}: {min(found):,} to {max(found):,})."
    )


def scores_note(sweep: Sweep) -> str:
    """A sentence where runs have no score, with a space before it."""
    partial = sum(cell.unscored > 0 for cell in sweep.cells)
    words = []
    if partial:
        words.append(
            f" Of {partial} of {len(sweep.cells)} cells some runs have no score: they failed, or "
            "no episode of theirs ended. What is left may be the lucky ones."
        )
    if sweep.lost:
        words.append(f" Not in it: {', '.join(one.incomplete for one in sweep.lost[:3])}")
        words.append(f", and {len(sweep.lost) - 3} more." if len(sweep.lost) > 3 else ".")
    return "".join(words)


def titled(text: str, sweep: Sweep) -> str:
    """A title that is not that of another study or variant."""
    return f"{text} ({sweep.title})"


def line(key: str, label: str, found: Band, dash: str = "solid") -> Series:
    """A line of a panel with its band, if it has one."""
    known = np.isfinite(found.low).any()
    low, high = (found.low, found.high) if known else (None, None)
    return Series(key, label, found.mean, low, high, dash, found.num_runs, found.error)


def with_errors(figure: Figure) -> Figure:
    """A figure whose bands are standard errors, as published, where they were intervals."""
    panels = [
        replace(panel, series=tuple(map(_with_error, panel.series)))
        if isinstance(panel, Lines)
        else panel
        for panel in figure.panels
    ]
    return replace(figure, panels=tuple(panels), caption=figure.caption.replace(BAND, SEM))


def _with_error(series: Series) -> Series:
    if series.low is None or series.error is None or np.isnan(series.error).all():
        return series
    return replace(series, low=series.y - series.error, high=series.y + series.error)
