"""How a study stands: what is finished, failed, under way and left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Failure:
    """A failed run, and why."""

    run: Run
    kind: str
    message: str


def standings(store: Store, runs: Sequence[Run]) -> tuple[list[Standing], list[Failure]]:
    """Counts by environment and algorithm, in the order of the plan, and all failures."""
    running = set(Locks(store.folder).held_elsewhere(run.id for run in runs))
    counts: dict[tuple[str, str], dict[str, int]] = {}
    failures = []
    for run in runs:
        kind = (run.labels.get("environment", run.env), run.algorithm)
        state = "left"
        if store.is_finished(run.id):
            state = "finished"
        elif store.is_failed(run.id):
            state = "failed"
            error = store.error(run.id)
            failures.append(Failure(run, error["type"], error["message"]))
        elif run.id in running:
            state = "running"
        tally = counts.setdefault(kind, {})
        tally[state] = tally.get(state, 0) + 1
        if store.has_checkpoint(run.id):
            tally["checkpoints"] = tally.get("checkpoints", 0) + 1
    rows = [Standing(*kind, **tally) for kind, tally in counts.items()]  # type: ignore[arg-type]
    return rows, failures
