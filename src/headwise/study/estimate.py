"""What a study will cost, before it is begun: by runs that are done, or by a few measured ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from headwise.study.planner import Pack, pack_key, pack_runs
from headwise.study.run import Run
from headwise.study.store import Store
from headwise.study.train import make_pack_loop
from headwise.training.pace import get_ready, impatient, seconds_per_step

_SECONDS = 0.3
"""How long a cell is measured, at least."""


@dataclass(frozen=True)
class Cost:
    """What runs of one kind will take on one core of this machine."""

    environment: str
    algorithm: str
    runs: int
    steps: int
    """Environment steps, over all runs."""
    seconds: float

    @property
    def rate(self) -> float:
        """Environment steps per second and core."""
        return self.steps / self.seconds if self.seconds else float("inf")


def estimate(
    runs: Sequence[Run],
    store: Store,
    max_members: int,
    workers: int,
    on_pack: Callable[[Pack], None] = lambda pack: None,
    device: str = "cpu",
) -> list[Cost]:
    """The cost of runs that are not finished, by environment and algorithm.

    Cells of which some run is finished are judged by it; the others are tried out for a moment.
    """
    known: dict[str, list[float]] = {}
    for run in runs:
        if store.is_finished(run.id):
            wall = store.result(run.id).get("wall_s")
            if wall is not None:
                known.setdefault(pack_key(run), []).append(float(wall))
    left = [run for run in runs if not store.is_finished(run.id)]
    per_run: dict[str, float] = {key: sum(walls) / len(walls) for key, walls in known.items()}
    costs: dict[tuple[str, str], Cost] = {}
    for pack in pack_runs(left, max_members, workers):
        on_pack(pack)
        key = pack_key(pack.runs[0])
        if key not in per_run:
            per_run[key] = measured_seconds(pack, device) / len(pack.runs)
        number = len(pack.runs)
        before = costs.get(pack.kind, Cost(*pack.kind, 0, 0, 0.0))
        costs[pack.kind] = replace(
            before,
            runs=before.runs + number,
            steps=before.steps + number * pack.steps,
            seconds=before.seconds + number * per_run[key],
        )
    return list(costs.values())


def measured_seconds(pack: Pack, device: str = "cpu") -> float:
    """How long a pack will take, from some ticks and updates of it."""
    loop = make_pack_loop(trial(pack), device)
    try:
        with one_thread():
            get_ready(loop)
            return seconds_per_step(loop, _SECONDS) * pack.steps
    finally:
        loop.env.close()


def trial(pack: Pack) -> Pack:
    """The same pack without the long wait for updates."""
    runs = (replace(run, settings=impatient(run.settings, run.num_envs)) for run in pack.runs)
    return Pack(tuple(runs))


@contextmanager
def one_thread() -> Iterator[None]:
    """As workers have it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
