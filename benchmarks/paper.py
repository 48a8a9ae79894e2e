"""What the whole paper study takes on this device, from the measured rate of every cell."""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import torch

from benchmarks.machine import description
from benchmarks.results import renew, table
from headwise.errors import HeadwiseError
from headwise.study.estimate import one_thread, trial
from headwise.study.load import load_study
from headwise.study.planner import Pack, by_turns, choose, pack_runs
from headwise.study.progress import duration
from headwise.study.train import POINTS, make_pack_loop
from headwise.training.device import let_streams_run_apart
from headwise.training.loop import Loop
from headwise.training.pace import get_ready, seconds_per_step
from headwise.training.report import metric_columns
from headwise.training.turns import Turns, one_round

SECONDS = 0.4
"""How long each cell is measured alone, if nothing else is said."""
AT_ONCE = 16
_TOGETHER = 2.5  # seconds, at least, that a group is measured
LONGEST = 10
"""How many cells are named that take longest."""
END_TO_END = "shoot-dep/discrete/dqn/vdn"
"""The cell whose throughput is told by itself."""


@dataclass
class Measured:
    """One cell: a population of all its seeds."""

    pack: Pack
    building: float = 0.0
    """Seconds more than at its pace until it goes at that: networks, memory, first updates, their
    capture."""
    reporting: float = 0.0
    """Seconds for all metrics that a run keeps."""
    alone: float = 0.0
    """Seconds of one environment step of every member, nothing else running."""
    together: float = 0.0
    """The same while the others of its group train too."""
    at_once: int = 1
    """How many those are, it included."""
    trouble: str | None = None
    """Why it could not be measured."""

    @property
    def members(self) -> int:
        return len(self.pack.runs)

    @property
    def steps(self) -> int:
        """Environment steps of all runs."""
        return self.members * self.pack.steps

    @property
    def seconds_alone(self) -> float:
        return self.pack.steps * self.alone + self.reporting

    @property
    def seconds_together(self) -> float:
        """Its share of the time in which its group trains."""
        return (self.pack.steps * self.together + self.reporting) / self.at_once


class Since:
    """How far a loop has come, and how long it took, up to its last update.

    It begins right after one, so a rollout counts whole or not at all.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop, self._updates = loop, loop.updates
        self._start, self._first = time.perf_counter(), loop.env_steps
        self.seconds, self.steps = 0.0, 0

    def look(self, now: float) -> None:
        """Takes note if there was an update."""
        if self._loop.updates > self._updates:
            self._updates = self._loop.updates
            self.seconds, self.steps = now - self._start, self._loop.env_steps - self._first


@dataclass
class Bench:
    """Where cells are measured: a device and, on a GPU, streams as the executor has them."""

    device: str
    at_once: int
    seconds: float
    streams: list[torch.cuda.Stream] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.device != "cpu":
            self.streams = [torch.cuda.Stream(self.device) for _ in range(self.at_once)]

    def place(self, index: int) -> AbstractContextManager[object]:
        return torch.cuda.stream(self.streams[index]) if self.streams else nullcontext()

    def measure(self, packs: Sequence[Pack]) -> Iterator[list[Measured]]:
        """Groups of cells in the order of the study, each measured alone and then together."""
        for at in range(0, len(packs), self.at_once):
            with one_thread():
                yield self._group(packs[at : at + self.at_once])
            gc.collect()  # a graph holds its memory until it is gone
            if self.streams:
                torch.cuda.empty_cache()

    def _group(self, packs: Sequence[Pack]) -> list[Measured]:
        cells = [Measured(pack) for pack in packs]
        loops: list[tuple[int, Loop, Measured]] = []
        try:
            for index, cell in enumerate(cells):
                try:
                    with self.place(index):
                        loops.append((index, self._begin(cell), cell))
                except HeadwiseError as error:  # an environment that is not installed, say
                    cell.trouble = str(error)
            for index, loop, cell in loops:
                with self.place(index):
                    steps = loop.env_steps
                    cell.alone = seconds_per_step(loop, self.seconds)
                cell.building = max(cell.building - steps * cell.alone, 0.0)
            with ThreadPoolExecutor(self.at_once) as aside:
                self._all_together(loops, aside)
        finally:
            for _, loop, _ in loops:
                loop.env.close()
        return cells

    def _begin(self, cell: Measured) -> Loop:
        start = time.perf_counter()
        loop = make_pack_loop(at_once_learning(cell.pack), self.device)
        get_ready(loop)
        cell.building = time.perf_counter() - start
        metric_columns(loop)
        start = time.perf_counter()
        metric_columns(loop)
        loop.algorithm.alive.cpu()
        cell.reporting = POINTS * (time.perf_counter() - start)
        return loop

    def _all_together(
        self, loops: Sequence[tuple[int, Loop, Measured]], aside: ThreadPoolExecutor
    ) -> None:
        """By turns, as the executor trains them; each gets as far as it can in the same time."""
        trainings = [
            Turns(
                loop.turns(sys.maxsize, aside),
                self.streams[index] if self.streams else None,
            )
            for index, loop, _ in loops
        ]
        since = [Since(loop) for _, loop, _ in loops]
        start = now = time.perf_counter()
        long_enough = start + max(4 * self.seconds, _TOGETHER)
        while trainings and (now < long_enough or not all(one.seconds for one in since)):
            for ended in one_round(trainings):
                assert ended.error is not None
                raise ended.error
            now = time.perf_counter()
            for one in since:
                one.look(now)
        for (_, _, cell), one in zip(loops, since, strict=True):
            cell.together = one.seconds / one.steps
            cell.at_once = len(loops)


def at_once_learning(pack: Pack) -> Pack:
    """The same pack with hardly any warm-up; rollouts stay as long as they are."""
    rollout = {k: v for k, v in pack.runs[0].settings.items() if k == "n_steps"}
    runs = (replace(run, settings={**run.settings, **rollout}) for run in trial(pack).runs)
    return Pack(tuple(runs))


def copies(pack: Pack, number: int) -> list[Pack]:
    """The same cell with other seeds, for as many populations."""
    size = len(pack.runs)
    return [
        Pack(tuple(replace(run, seed=run.seed + copy * size) for run in pack.runs))
        for copy in range(number)
    ]


def run(
    peers: str | None,
    *,
    rounds: int,
    seconds: float | None,
    command: str,
    device: str = "cuda",
    cells: str | None = None,
    at_once: int = AT_ONCE,
) -> str:
    """Measures all cells, or those that match, and renews RESULTS.md if it was all of them."""
    let_streams_run_apart()
    if device != "cpu" and not torch.cuda.is_available():
        return "There is no CUDA device to measure; give --device cpu, and --cells for some cells."
    runs = load_study("paper").runs()
    packs = by_turns(pack_runs(choose(runs, cells)))
    origin = description(command)
    bench = Bench(device, at_once, seconds or SECONDS)
    done: list[Measured] = []
    ends: list[str] = []
    begun = time.perf_counter()

    def section() -> str:
        text = report(ends, done, len(packs), at_once, time.perf_counter() - begun, origin, device)
        if cells is None:
            renew("paper", text)
        return text

    with interruptible():
        try:
            chosen = [p for p in packs if p.runs[0].cell == END_TO_END]
            if chosen:
                ends = end_to_end(bench, chosen[0])
            for group in bench.measure(packs):
                done += group
                section()  # whatever comes, this is kept
                sys.stderr.write(f"{len(done)} of {len(packs)}: {group[-1].pack.runs[0].cell}\n")
        except KeyboardInterrupt:
            sys.stderr.write("stopped; what was measured is kept\n")
    return section()


def end_to_end(bench: Bench, pack: Pack) -> list[str]:
    """Environment steps per second of all members: one population, and as many as go at once."""
    (group,) = bench.measure(copies(pack, bench.at_once))
    alone = group[0].members / group[0].alone
    together = sum(cell.members / cell.together for cell in group)
    return [
        f"{END_TO_END}, {group[0].members} seeds of {pack.runs[0].num_envs} slots",
        f"{alone:,.0f}",
        f"{together:,.0f}",
    ]


def report(
    ends: list[str],
    done: Sequence[Measured],
    asked: int,
    at_once: int,
    wall: float,
    origin: str,
    device: str,
) -> str:
    """The section of RESULTS.md."""
    good = [cell for cell in done if cell.trouble is None]
    kinds: dict[tuple[str, str], list[Measured]] = {}
    for cell in good:
        kinds.setdefault(cell.pack.kind, []).append(cell)
    rows = [_row(*kind, cells) for kind, cells in kinds.items()]
    rows.append(_row("all", "", good))
    name = torch.cuda.get_device_name(device) if device != "cpu" else "the CPU"
    runs = sum(cell.members for cell in good)
    parts = [
        "## The paper study, projected",
        f"{len(good)} of {asked} cells ({runs:,} runs), each measured: its rate with updates, all "
        f"seeds of a cell in one population; alone, and with {at_once} populations at once, each "
        "on a stream of its own, by turns. Building is what comes before: networks, memory, the "
        "first updates and their capture, less what its steps take later; populations wait for one "
        "another there, so all of it is added. What trains at the same time is what the study "
        "trains at the same time: one cell of each environment and algorithm. Not in it: writing "
        "the store, and that fewer are left to train together at the end.",
        f"{name}, float32 products {torch.get_float32_matmul_precision()}, {origin}; took "
        f"{duration(wall)}.",
    ]
    if ends:
        columns = ["environment steps/s, all members", "one population", f"{at_once} at once"]
        parts.append(table(columns, [ends]))
    columns = [
        "environment", "algorithm", "cells", "runs", "steps", "steps/s alone",
        f"steps/s, {at_once} at once", "building", "alone", f"{at_once} at once",
    ]  # fmt: skip
    parts.append(table(columns, rows))
    building, alone, together = _times(good)
    parts.append(
        f"Projected: {duration(building + alone)} one population at a time; "
        f"{duration(building + together)} with {at_once} at once "
        f"(training {duration(together)}, building {duration(building)})."
    )
    longest = sorted(good, key=lambda cell: -cell.seconds_together)[:LONGEST]
    told = ", ".join(f"{cell.pack.runs[0].cell} {cell.seconds_together:.0f}" for cell in longest)
    parts.append(f"The cells that take longest, seconds with {at_once} at once: {told}.")
    if len(good) < asked:
        troubles = dict.fromkeys(cell.trouble for cell in done if cell.trouble)
        missing = [f"{asked - len(good)} cells are not in it", *troubles]
        parts.append(". ".join(missing))
    return "\n\n".join(parts)


def _row(environment: str, algorithm: str, cells: Sequence[Measured]) -> list[str]:
    building, alone, together = _times(cells)
    steps = sum(cell.steps for cell in cells)
    return [
        environment, algorithm, str(len(cells)), f"{sum(cell.members for cell in cells):,}",
        f"{steps:,}", f"{steps / max(alone, 1e-9):,.0f}", f"{steps / max(together, 1e-9):,.0f}",
        duration(building), duration(alone), duration(together),
    ]  # fmt: skip


def _times(cells: Sequence[Measured]) -> tuple[float, float, float]:
    """Seconds of building, of training alone, and of training together."""
    return (
        sum(cell.building for cell in cells),
        sum(cell.seconds_alone for cell in cells),
        sum(cell.seconds_together for cell in cells),
    )


@contextmanager
def interruptible() -> Iterator[None]:
    """To be told to end is the same as to be interrupted."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
