"""What a study will cost, before it is begun: by runs that are done, or by a few measured ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from headwise import ENGINE
from headwise.study.planner import Pack, pack_key, pack_runs
from headwise.study.result import engine_of
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


@dataclass(frozen=True)
class Hopeless:
    """A cell that cannot even begin, and why."""

    cell: str
    runs: int
    why: str


def estimate(
    runs: Sequence[Run],
    left: Sequence[Run],
    store: Store,
    max_members: int,
    workers: int,
    on_pack: Callable[[Pack], None] = lambda pack: None,
    device: str = "cpu",
) -> tuple[list[Cost], list[Hopeless]]:
    """The cost of runs by environment and algorithm, and the cells that would fail.

    Cells of which some run was finished on such a device are judged by it; the others are tried
    out for a moment.

    Args:
        runs: All runs that are asked for.
        left: Those of them that are to be done.
        store: Where finished ones are.
        max_members: Runs packed into one population, at most.
        workers: Packs trained at the same time.
        on_pack: Told which pack comes next.
        device: Where learners live.
    """
    known: dict[str, list[float]] = {}
    for run in runs:
        if store.is_finished(run.id) and _made_like_here(store, run, device):
            wall = store.result(run.id).get("wall_s")
            if wall is not None:
                known.setdefault(pack_key(run), []).append(float(wall))
    per_run: dict[str, float] = {key: sum(walls) / len(walls) for key, walls in known.items()}
    costs: dict[tuple[str, str], Cost] = {}
    hopeless: dict[str, Hopeless] = {}
    for pack in pack_runs(left, max_members, workers):
        on_pack(pack)
        key = pack_key(pack.runs[0])
        number = len(pack.runs)
        if key in hopeless:
            hopeless[key] = replace(hopeless[key], runs=hopeless[key].runs + number)
            continue
        if key not in per_run:
            try:
                per_run[key] = measured_seconds(pack, device) / number
            except Exception as error:  # whatever it is, training would meet it too
                hopeless[key] = Hopeless(pack.runs[0].cell, number, str(error) or repr(error))
                continue
        before = costs.get(pack.kind, Cost(*pack.kind, 0, 0, 0.0))
        costs[pack.kind] = replace(
            before,
            runs=before.runs + number,
            steps=before.steps + number * pack.steps,
            seconds=before.seconds + number * per_run[key],
        )
    return list(costs.values()), list(hopeless.values())


def _made_like_here(store: Store, run: Run, device: str) -> bool:
    """Whether a run's time says something of this engine, this device and these products."""
    made = store.fingerprint(run.id)
    same_device = str(made.get("device", "cpu")).partition(":")[0] == device.partition(":")[0]
    precision = torch.get_float32_matmul_precision()
    same_engine = engine_of(made) == ENGINE
    return same_engine and same_device and made.get("float32_products", precision) == precision


def measured_seconds(pack: Pack, device: str = "cpu") -> float:
    """How long a pack will take, from some ticks and updates of it."""
    loop = make_pack_loop(trial(pack), device)
    try:
        with one_thread():
            get_ready(loop)
            return seconds_per_step(loop, _SECONDS) * pack.steps
    finally:
        loop.env.close()


def can_begin(pack: Pack) -> bool:
    """Whether a pack can be built, as not every factorization goes with every action."""
    try:
        make_pack_loop(trial(pack)).env.close()
    except Exception:  # whatever it is: its runs will tell
        return False
    return True


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
