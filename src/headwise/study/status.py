"""How a study stands: what is finished, failed, under way and left."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from headwise.errors import StoreError
from headwise.study.live import Live, UnderWay
from headwise.study.locks import Locks
from headwise.study.run import Run
from headwise.study.store import Store


@dataclass(frozen=True)
class Standing:
    """Counts of runs of one kind."""

    environment: str
    algorithm: str
    finished: int = 0
    failed: int = 0
    running: int = 0
    left: int = 0
    checkpoints: int = 0
    """Finished runs that have a checkpoint."""
    mean_score: float = float("nan")
    """Of the finished ones, the mean of their returns; of those under way, if none is finished."""


@dataclass(frozen=True)
class Failure:
    """A failed run, and why."""

    run: Run
    kind: str
    message: str


class Running(NamedTuple):
    """A run that is being trained."""

    run: Run
    so_far: UnderWay | None
    """How far it is, if its runner has said so."""


class Standings(NamedTuple):
    """How a study stands."""

    rows: list[Standing]
    """By environment and algorithm, in the order of the plan."""
    failures: list[Failure]
    running: list[Running]


def standings(store: Store, runs: Sequence[Run]) -> Standings:
    """Looks at every run of these."""
    held = set(Locks(store.folder).held_elsewhere(run.id for run in runs))
    live = Live(store.folder).read() if held else {}
    counts: dict[tuple[str, str], dict[str, Any]] = {}
    scores: dict[tuple[str, str], dict[str, list[float]]] = {}
    failures, running = [], []
    for run in runs:
        kind = (run.labels.get("environment", run.env), run.algorithm)
        state = "left"
        mine = scores.setdefault(kind, {"finished": [], "running": []})
        if store.is_finished(run.id):
            state = "finished"
            with suppress(StoreError):  # of a damaged run, which a report tells of
                mine[state].append(store.record(run.id).score)
        elif store.is_failed(run.id):
            state = "failed"
            error = store.error(run.id)
            failures.append(Failure(run, error["type"], error["message"]))
        elif run.id in held:
            state, so_far = "running", live.get(run.id)
            running.append(Running(run, so_far))
            if so_far is not None and so_far.mean_return is not None:
                mine[state].append(so_far.mean_return)
        tally = counts.setdefault(kind, {})
        tally[state] = tally.get(state, 0) + 1
        if store.has_checkpoint(run.id):
            tally["checkpoints"] = tally.get("checkpoints", 0) + 1
    rows = []
    for kind, tally in counts.items():
        found = [x for x in scores[kind]["finished"] or scores[kind]["running"] if x == x]
        mean = sum(found) / len(found) if found else float("nan")
        rows.append(replace(Standing(*kind, mean_score=mean), **tally))
    return Standings(rows, failures, running)
