"""Training a pack: from runs to results. Every executor calls this and nothing else."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.study.clocked import Clocked
from headwise.study.environment import make_env
from headwise.study.evaluation import Evaluator, evaluation_of
from headwise.study.extras import NOTHING, Extras, Told
from headwise.study.fingerprint import fingerprint
from headwise.study.flops import act_flops
from headwise.study.keeper import Keeper
from headwise.study.measures import measures
from headwise.study.planner import Pack
from headwise.study.result import EpisodeTable, MetricTable, RunResult
from headwise.study.saved import Before, Saver
from headwise.training.build import make_loop
from headwise.training.loop import Loop
from headwise.training.report import make_report, metric_columns
from headwise.training.threads import training_threads
from headwise.training.turns import Question

POINTS = 200
"""How often metrics are kept over a run, at most."""
OnSteps: TypeAlias = Callable[[int, list[float]], None]


def make_pack_loop(pack: Pack, device: str = "cpu", env_threads: int | None = 1) -> Loop:
    """The loop that trains a pack, ready to run."""
    first = pack.runs[0]
    seeds = [run.seed for run in pack.runs]
    env = make_env(first, seeds, first.num_envs, env_threads)
    return make_loop(env, pack.config().fitting(env.obs_spec), seeds, device)


def train_pack(
    pack: Pack,
    thresholds: tuple[float, ...] = (),
    device: str = "cpu",
    on_steps: OnSteps | None = None,
    *,
    keep_checkpoints: bool = False,
    extras: Extras = NOTHING,
) -> list[RunResult]:
    """Trains all runs of a pack in one population; arguments are those of `train_by_turns`."""
    turns = train_by_turns(
        pack, thresholds, device, on_steps, keep_checkpoints=keep_checkpoints, extras=extras
    )
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
    on_steps: OnSteps | None = None,
    *,
    keep_checkpoints: bool = False,
    extras: Extras = NOTHING,
    aside: Executor | None = None,
) -> Generator[Question, None, list[RunResult]]:
    """Trains all runs of a pack in one population, pausing whenever it would wait.

    Args:
        pack: The runs.
        thresholds: Returns for `steps_to_X`.
        device: Where the learner lives.
        on_steps: Called now and then with the environment steps that each member has taken, and
            the mean return of the last episodes of each.
        keep_checkpoints: Whether results come with a checkpoint of the trained agent.
        extras: What else is wanted.
        aside: Threads for a slow environment.
    """
    start = time.perf_counter()
    loop = make_pack_loop(pack, device)
    clocked = Clocked(loop.algorithm)
    loop.algorithm = clocked
    log = _Log(len(pack.runs))
    how = evaluation_of(pack.runs[0])
    evaluator = None if how is None else Evaluator(how, pack.runs[0], POINTS)
    saver = None if extras.saves is None else Saver(extras.saves, pack)
    told: Told | None = None
    try:
        # Before the training, so that what cannot be kept is told at once and not at the end.
        keeper = Keeper(pack, loop.env) if keep_checkpoints else None
        before = Before(0, 0.0, uuid.uuid4().hex[:8], {}, None)
        if saver is not None and (saved := saver.resume(loop)) is not None:
            before = saved
            log.load(saved.said["log"], saved.rows)
            if evaluator is not None:
                evaluator.found = [(step, *found) for step, *found in saved.said["evaluations"]]
        start -= before.seconds
        if extras.loggers is not None:
            told = Told(pack.runs, extras, before.attempt)
            told.open(loop.env_steps)
        began, at = time.perf_counter(), loop.env_steps
        for part in range(before.part + 1, POINTS + 1):
            with training_threads(len(pack.runs), loop.keys.device):
                yield from loop.turns(math.ceil(pack.steps * part / POINTS), aside)
                if evaluator is not None:
                    evaluator.after(part, loop)
            log.take(loop)
            if on_steps is not None:
                returns = loop.episodes.recent_return(len(pack.runs))
                on_steps(min(loop.env_steps, pack.steps), returns.tolist())
            if told is not None:
                rate = (loop.env_steps - at) / max(time.perf_counter() - began, 1e-9)
                scores = {} if evaluator is None else evaluator.values(loop.env_steps)
                told.write(make_report(loop, pack.steps, rate * len(pack.runs), scores))
            if saver is not None and part < POINTS and saver.is_due(loop.env_steps):
                if told is not None:
                    told.flush()
                said = {"log": log.said(), "evaluations": evaluator.found if evaluator else []}
                spent = time.perf_counter() - start
                saver.save(loop, Before(part, spent, before.attempt, said, log.rows))
        wall = (time.perf_counter() - start) / len(pack.runs)
        costs = {**_costs(loop, clocked, len(pack.runs), device), "wall_s": wall}
        checkpoints = [None] * len(pack.runs) if keeper is None else keeper.checkpoints(loop)
    finally:
        loop.env.close()
        if evaluator is not None:
            evaluator.close()
        if told is not None:
            told.close()
    made = {**_made(pack, device), "wall_s": wall}
    results = []
    for member, run in enumerate(pack.runs):
        episodes, returns = _episodes_of(loop, member)
        scalars = {
            **measures(episodes.step, returns, thresholds), **costs, **log.divergence_of(member),
            **({} if evaluator is None else evaluator.scalars_of(member)),
        }  # fmt: skip
        metrics = log.metrics_of(member)
        results.append(RunResult(run, episodes, metrics, scalars, made, checkpoints[member]))
    return results


def _costs(loop: Loop, clocked: Clocked, num_members: int, device: str) -> dict[str, Any]:
    """What a member took, as its share of what the population took."""
    # On a GPU only the runs before the capture pass by the stopwatch, so nothing is said.
    watches = (clocked.updating, clocked.acting) if device == "cpu" else (None, None)
    update_ms, act_ms = (
        None if watch is None or watch.mean_ms is None else watch.mean_ms / num_members
        for watch in watches
    )
    return {
        "num_parameters": clocked.inner.num_parameters,
        "act_flops": act_flops(loop),
        "updates": loop.updates,
        "update_ms": update_ms,
        "act_ms": act_ms,
    }


def _made(pack: Pack, device: str) -> dict[str, Any]:
    """Where and with whom a pack was trained."""
    return {
        **fingerprint(),
        "device": device,
        "threads": torch.get_num_threads(),
        "packed_with": [run.id for run in pack.runs],
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _episodes_of(loop: Loop, member: int) -> tuple[EpisodeTable, NDArray[np.float64]]:
    """The episodes of a member, and their returns before they are rounded for the file."""
    table = loop.episodes.table
    step, _, returns, length = table[table[:, 1] == member].T
    kept = step.astype(np.int64), returns.astype(np.float32), length.astype(np.int32)
    return EpisodeTable(*kept), returns


class _Log:
    """What is to be told of members at the end, kept as it comes."""

    def __init__(self, num_members: int) -> None:
        self._updates = 0
        self._steps: list[int] = []
        self._names: list[str] = []
        self._rows: list[NDArray[np.float32]] = []
        self._diverged_at: dict[int, int] = {}
        self._num_members = num_members

    def take(self, loop: Loop) -> None:
        """Keeps what the last update reported, unless it is kept already, and who has diverged."""
        for member in np.nonzero(~loop.algorithm.alive.cpu().numpy())[0].tolist():
            self._diverged_at.setdefault(member, loop.env_steps)
        if loop.updates == self._updates:
            return
        self._updates = loop.updates
        for name, values in metric_columns(loop).items():
            self._steps.append(loop.env_steps)
            self._names.append(name)
            self._rows.append(values.astype(np.float32))

    @property
    def rows(self) -> NDArray[np.float32]:
        """All values, (rows, members)."""
        return np.stack(self._rows) if self._rows else np.empty((0, self._num_members), np.float32)

    def said(self) -> dict[str, Any]:
        """All else, as plain data."""
        diverged = list(self._diverged_at.items())
        told = {"updates": self._updates, "steps": self._steps, "names": self._names}
        return {**told, "diverged": diverged}

    def load(self, said: dict[str, Any], rows: NDArray[np.float32]) -> None:
        """Goes back to what was kept before."""
        self._updates, self._steps, self._names = said["updates"], said["steps"], said["names"]
        self._rows, self._diverged_at = list(rows), dict(said["diverged"])

    def metrics_of(self, member: int) -> MetricTable:
        """The table of one member."""
        steps = np.array(self._steps, dtype=np.int64)
        return MetricTable(steps, self._names, self.rows[:, member])

    def divergence_of(self, member: int) -> dict[str, Any]:
        """Whether a member has diverged, and about when."""
        at = self._diverged_at.get(member)
        return {"diverged": at is not None, "diverged_at": at}
