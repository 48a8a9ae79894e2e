"""Training a pack: from runs to results. Every executor calls this and nothing else."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.envs.make import make_vec
from headwise.population import Adam
from headwise.study.cells import configs_of
from headwise.study.clocked import Clocked
from headwise.study.fingerprint import fingerprint
from headwise.study.flops import act_flops
from headwise.study.keeper import Keeper
from headwise.study.measures import measures
from headwise.study.planner import Pack
from headwise.study.result import EpisodeTable, MetricTable, RunResult
from headwise.training.build import make_loop
from headwise.training.loop import Loop
from headwise.training.report import metric_columns
from headwise.training.threads import training_threads
from headwise.training.turns import Question

POINTS = 200
"""How often metrics are kept over a run, at most."""


def make_pack_loop(pack: Pack, device: str = "cpu", env_threads: int | None = 1) -> Loop:
    """The loop that trains a pack, ready to run."""
    first = pack.runs[0]
    seeds = [run.seed for run in pack.runs]
    view = {} if first.view is None else {"view": first.view}
    settings = {**first.env_settings, **view, "num_threads": env_threads}
    env = make_vec(first.env, seeds, first.num_envs, **settings)
    config, factorization = configs_of(
        first.algorithm, pack.settings(), first.factorization, first.factorization_settings
    )
    return make_loop(env, config, factorization, seeds, first.steps, device)


def train_pack(
    pack: Pack,
    thresholds: tuple[float, ...] = (),
    device: str = "cpu",
    on_steps: Callable[[int], None] | None = None,
    *,
    keep_checkpoints: bool = False,
) -> list[RunResult]:
    """Trains all runs of a pack in one population; arguments are those of `train_by_turns`."""
    turns = train_by_turns(pack, thresholds, device, on_steps, keep_checkpoints=keep_checkpoints)
    while True:
        try:
            next(turns)
        except StopIteration as end:
            results: list[RunResult] = end.value
            return results


def train_by_turns(
    pack: Pack,
    thresholds: tuple[float, ...] = (),
    device: str = "cpu",
    on_steps: Callable[[int], None] | None = None,
    *,
    keep_checkpoints: bool = False,
    aside: Executor | None = None,
) -> Generator[Question, None, list[RunResult]]:
    """Trains all runs of a pack in one population, pausing whenever it would wait.

    Args:
        pack: The runs.
        thresholds: Returns for `steps_to_X`.
        device: Where the learner lives.
        on_steps: Called now and then with the environment steps that each member has taken.
        keep_checkpoints: Whether results come with a checkpoint of the trained agent.
        aside: Threads for a slow environment.
    """
    start = time.perf_counter()
    loop = make_pack_loop(pack, device)
    clocked = Clocked(loop.algorithm)
    loop.algorithm = clocked
    log = _MetricLog(len(pack.runs))
    diverged_at: dict[int, int] = {}
    try:
        # Before the training, so that what cannot be kept is told at once and not at the end.
        keeper = Keeper(pack, loop.env) if keep_checkpoints else None
        for part in range(1, POINTS + 1):
            with training_threads(len(pack.runs), loop.keys.device):
                yield from loop.turns(math.ceil(pack.steps * part / POINTS), aside)
            log.take(loop)
            for member in np.nonzero(~loop.algorithm.alive.cpu().numpy())[0].tolist():
                diverged_at.setdefault(member, loop.env_steps)
            if on_steps is not None:
                on_steps(min(loop.env_steps, pack.steps))
        wall = time.perf_counter() - start
        flops = act_flops(loop)
        checkpoints = [None] * len(pack.runs) if keeper is None else keeper.checkpoints(loop)
    finally:
        loop.env.close()
    share = 1.0 / len(pack.runs)
    wall *= share
    common = {
        "num_parameters": num_parameters(clocked.inner),
        "act_flops": flops,
        "updates": loop.updates,
        # On a GPU only the runs before the capture pass by the stopwatch, so nothing is said.
        "update_ms": _scaled(clocked.updating.mean_ms, share) if device == "cpu" else None,
        "act_ms": _scaled(clocked.acting.mean_ms, share) if device == "cpu" else None,
        "wall_s": wall,
    }
    made = {
        **fingerprint(),
        "device": device,
        "threads": torch.get_num_threads(),
        "packed_with": [run.id for run in pack.runs],
        "wall_s": wall,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    table = loop.episodes.table
    results = []
    for member, run in enumerate(pack.runs):
        mine = table[table[:, 1] == member]
        episodes = EpisodeTable(
            mine[:, 0].astype(np.int64), mine[:, 2].astype(np.float32), mine[:, 3].astype(np.int32)
        )
        scalars: dict[str, Any] = {
            **measures(episodes.step, mine[:, 2], thresholds),
            **common,
            "diverged": member in diverged_at,
            "diverged_at": diverged_at.get(member),
        }
        results.append(
            RunResult(run, episodes, log.of_member(member), scalars, made, checkpoints[member])
        )
    return results


def num_parameters(algorithm: object) -> int:
    """How many numbers one member learns; target networks do not count, they only follow."""
    optimisers = [x for x in vars(algorithm).values() if isinstance(x, Adam)]
    assert optimisers, "an algorithm that learns nothing"
    return sum(optimiser.packed.num_parameters for optimiser in optimisers)


class _MetricLog:
    """Metrics as they come, kept by member at the end."""

    def __init__(self, num_members: int) -> None:
        self._updates = 0
        self._steps: list[int] = []
        self._names: list[str] = []
        self._rows: list[NDArray[np.float32]] = []
        self._num_members = num_members

    def take(self, loop: Loop) -> None:
        """Keeps what the last update reported, unless it is kept already."""
        if loop.updates == self._updates:
            return
        self._updates = loop.updates
        for name, values in metric_columns(loop).items():
            self._steps.append(loop.env_steps)
            self._names.append(name)
            self._rows.append(values.astype(np.float32))

    def of_member(self, member: int) -> MetricTable:
        """The table of one member."""
        rows = np.stack(self._rows) if self._rows else np.empty((0, self._num_members), np.float32)
        return MetricTable(np.array(self._steps, dtype=np.int64), self._names, rows[:, member])


def _scaled(value: float | None, share: float) -> float | None:
    return None if value is None else value * share
