"""A cell of the goldens played by today's learner, and the digest of what it has learned.

A digest does not depend on the instruction set that operations are built for, on how many threads
there are, on who else is in the population, or on whether updates are recorded. First parameters
are those of the goldens, because orthogonal ones come from the machine's linear algebra.

Run as a program it prints the digests of the cells named, on as many threads as the first argument
says.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from engine_cells import (
    FOLDER,
    SEEDS,
    STAGES,
    UPDATES,
    Cell,
    act_after,
    build,
    config_of,
    golden,
    task_of,
)
from old_engine import Golden, store_of
from torch import Tensor

from headwise.ops import Recorded
from headwise.ops.operation import Operation

DIGESTS = FOLDER / "engine_digests.json"
EVERYBODY = tuple(range(len(SEEDS)))
REFUSED = {"sac-ar-hybrid-order=bxxxyxa": "SAC draws continuous heads before discrete ones"}
"""What the first engine took and learners refuse today, with the message."""


@dataclass
class Played:
    """What came of a cell.

    Args:
        golden: What the first engine made of it.
        rows: What each section of parameters was after the first update and after the last.
        kl_coef: The weight of the divergence then, where there is one.
        metrics: What the first update reported, and the last.
        acted: Actions drawn after each update, (updates, P, E, H).
        state: Everything that members keep in the end.
    """

    golden: Golden
    rows: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    kl_coef: dict[str, Tensor | None] = field(default_factory=dict)
    metrics: list[dict[str, Tensor]] = field(default_factory=list)
    acted: list[Tensor] = field(default_factory=list)
    state: dict[str, Tensor] = field(default_factory=dict)


def play(
    cell: Cell,
    members: Sequence[int] = EVERYBODY,
    *,
    records: bool = True,
    kind: Callable[..., Any] | None = None,
) -> Played:
    """All updates of a cell.

    Args:
        cell: The cell.
        members: Which of the golden's members there are.
        records: Whether updates are recorded, or run operation by operation.
        kind: The learner; None: that of the cell's algorithm.
    """
    seeds = [SEEDS[m] for m in members]
    learner: Any = kind(config_of(cell), task_of(cell, seeds)) if kind else build(cell, seeds)
    if not records:
        for name, x in list(vars(learner).items()):
            if isinstance(x, Recorded):
                setattr(learner, name, Recorded(x._body, "cpu", records=False))
    played = Played(Golden(cell, learner, members))
    batches = golden(cell.algorithm).batches(cell, list(members))
    for k in range(UPDATES):
        batch = batches[k % len(batches)]
        reported = learner.update(batch)()
        played.acted.append(act_after(cell, learner, batch))
        if k in (0, UPDATES - 1):
            stage = "one" if k == 0 else "eight"
            names = played.golden.sections
            played.rows[stage] = {name: store_of(learner, name).rows() for name in names}
            played.kl_coef[stage] = learner.state_dict().get("kl_coef")
            played.metrics.append({n: x.reshape(len(members), -1) for n, x in reported.items()})
    assert learner.alive.all()
    played.state = learner.state_dict()
    return played


@cache
def population(name: str) -> Played:
    """All members of a cell together."""
    return play(cells()[name])


@cache
def cells() -> dict[str, Cell]:
    """Those that goldens are there for and that learners take, by name."""
    found = [cell for algorithm in STAGES for cell, _ in golden(algorithm).cells.values()]
    return {cell.name: cell for cell in found if cell.name not in REFUSED}


def digest(states: Sequence[dict[str, Tensor]]) -> str:
    """A few digits that say what members have learned, each in rows of its own."""
    found = hashlib.sha256()
    for name in sorted(states[0]):
        rows = torch.cat([state[name] for state in states])
        found.update(f"{name} {rows.dtype} {tuple(rows.shape)} ".encode())
        found.update(rows.contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def member(state: dict[str, Tensor], row: int) -> dict[str, Tensor]:
    """What one of the members keeps, as a population of its own."""
    return {name: x[row : row + 1] for name, x in state.items()}


def not_compiled(cell: Cell) -> list[str]:
    """Operations whose definitions run while a cell learns; those that only report do not count.

    Torch computes them, by kernels that differ from one instruction set to another.
    """
    seen: set[str] = set()
    define = Operation._define

    def watched(operation: Operation, *given: Any) -> None:
        if not operation.definition.__module__.endswith(".diagnostics"):
            seen.add(operation.name)
        define(operation, *given)

    Operation._define = watched  # type: ignore[method-assign]
    try:
        learner: Any = build(cell, SEEDS[:1])
        learner.update(golden(cell.algorithm).batches(cell, [0])[0])
    finally:
        Operation._define = define  # type: ignore[method-assign]
    return sorted(seen)


def machine() -> str:
    """What the definitions' rounding depends on."""
    return f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    print(json.dumps({name: digest([play(cells()[name]).state]) for name in sys.argv[2:]}))
