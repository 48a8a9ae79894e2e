"""Steps per second of things that take turns, so that a busy moment hits all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Meter = Callable[[float], float]
"""Works for so many seconds and says how many things it did per second."""


def meter(step: Callable[[], object], things: int = 1) -> Meter:
    """A meter of a function that does so many things at each call."""

    def measure(seconds: float) -> float:
        # The clock is looked at so rarely that looking costs nothing.
        calls, start = 1, time.perf_counter()
        step()
        once = time.perf_counter() - start
        batch = max(1, int(0.005 / max(once, 1e-7)))
        start = time.perf_counter()
        calls = 0
        while (now := time.perf_counter()) - start < seconds:
            for _ in range(batch):
                step()
            calls += batch
        return calls * things / (now - start)

    return measure


@dataclass(frozen=True)
class Race:
    """The medians of meters that took turns, and of their ratios to the last one."""

    rates: list[float]
    ratios: list[float]
    spread: list[tuple[float, float]]
    """The smallest and the largest ratio of all rounds."""


def race(meters: Sequence[Meter], *, rounds: int, seconds: float) -> Race:
    """Lets the meters take turns. A ratio is taken within a round: its two sides are neighbors."""
    for measure in meters:
        measure(0.3 * seconds)  # warm up
    rows = [[measure(seconds) for measure in meters] for _ in range(rounds)]
    ratios = [[row[i] / row[-1] for row in rows] for i in range(len(meters))]
    return Race(
        rates=[statistics.median(column) for column in zip(*rows, strict=True)],
        ratios=[statistics.median(column) for column in ratios],
        spread=[(min(column), max(column)) for column in ratios],
    )
