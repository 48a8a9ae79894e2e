"""Updates on a GPU: microseconds for populations of several sizes, alone and many at a time."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch

from benchmarks.machine import description
from benchmarks.results import renew, table
from headwise.algorithms import algorithms
from headwise.algorithms.base import ReplayPlan
from headwise.algorithms.ppo.learner import PPOLearner
from headwise.envs.make import make_vec
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.device import let_streams_run_apart
from headwise.training.loop import Loop


class Cell(NamedTuple):
    """What is updated, on HybridShoot."""

    name: str
    algorithm: str
    factorization: str
    view: str
    settings: dict[str, Any]


CELLS = (
    Cell("DQN vdn", "dqn", "vdn", "discrete", {}),
    Cell("SAC shared (Concat)", "sac", "shared", "hybrid", {"actor_gradient": "straight_through"}),
    Cell("SAC shared", "sac", "shared", "hybrid", {}),
    Cell("SAC vdn (BDQ)", "sac", "vdn", "discrete", {}),
    Cell("PPO vdn, minibatch of 128", "ppo", "vdn", "discrete", {}),
)
MEMBERS = (1, 5, 64)
POPULATIONS = (1, 8, 16)
PRECISIONS = {"high": "TF32", "highest": "float32"}


def ready(cell: Cell, members: int) -> Loop:
    """A loop on HybridShoot with the paper's sizes, its memory filled, one update behind it."""
    env = make_vec("HybridShoot", range(members), 16, view=cell.view)
    first = {} if cell.algorithm == "ppo" else {"learning_starts": 4096, "buffer_size": 8192}
    config = algorithms.get(cell.algorithm)(net_arch=(256, 256), **first, **cell.settings)
    plan = RunConfig.of(config, factorization=cell.factorization, total_timesteps=10**7)
    loop = make_loop(env, plan, range(members), "cuda")
    loop.run(4096)
    return loop


def bundle(loop: Loop) -> int:
    """Updates that a loop does in one call: what one graph holds."""
    return 4 if isinstance(loop.algorithm.plan, ReplayPlan) else 1


def parts(loop: Loop) -> int:
    """Steps of the optimizer in such a call: updates, or PPO's minibatches."""
    algorithm = loop.algorithm
    if isinstance(algorithm, PPOLearner):
        return algorithm.config.n_epochs * -(-algorithm.num_rows // algorithm.batch_size)
    return bundle(loop)


def microseconds(cell: Cell, members: int, populations: int) -> float:
    """Of one update (PPO: one minibatch) of one population, all of them working at once."""
    streams = [torch.cuda.Stream() for _ in range(populations)]
    loops = []
    for stream in streams:
        with torch.cuda.stream(stream):
            loops.append(ready(cell, members))

    def round_of_updates() -> None:
        for stream, loop in zip(streams, loops, strict=True):
            with torch.cuda.stream(stream) if populations > 1 else nullcontext():
                loop.learn(bundle(loop))

    for _ in range(6):
        round_of_updates()
    torch.cuda.synchronize()
    rounds, start = 0, time.perf_counter()
    while time.perf_counter() - start < 0.7:
        for _ in range(3 if cell.algorithm == "ppo" else 20):
            round_of_updates()
            rounds += 1
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / (rounds * populations * parts(loops[0])) * 1e6


def run(
    peers: str | None, *, rounds: int, seconds: float, command: str, ablate: bool = False
) -> str:
    """Measures every cell and renews RESULTS.md; or what each kernel gains."""
    let_streams_run_apart()
    if not torch.cuda.is_available():
        return "There is no CUDA device to measure."
    if ablate:
        from benchmarks import gpu_ablation

        return gpu_ablation.run(rounds=rounds, seconds=seconds, command=command)
    rows: list[list[str]] = []
    for precision in PRECISIONS:
        torch.set_float32_matmul_precision(precision)
        for cell in CELLS:
            by_size = [microseconds(cell, members, 1) for members in MEMBERS]
            by_number = [microseconds(cell, 5, populations) for populations in POPULATIONS[1:]]
            rows.append(
                [cell.name, PRECISIONS[precision], *(f"{us:.0f}" for us in (*by_size, *by_number)),
                 f"{by_size[-1] / by_size[0]:.2f}"]
            )  # fmt: skip
            sys.stderr.write(" | ".join(rows[-1]) + "\n")
            renew("gpu", section(rows, command))  # whatever comes, this is kept
    return section(rows, command)


def section(rows: list[list[str]], command: str) -> str:
    """The section of RESULTS.md."""
    columns = [
        "update", "products in", *(f"P = {members}" for members in MEMBERS),
        *(f"P = 5, {n} at once" for n in POPULATIONS[1:]), "64 to 1",
    ]  # fmt: skip
    return "\n\n".join(
        [
            "## Updates on a GPU",
            "Microseconds of one update of one population, captured as CUDA graphs; [256, 256], "
            "batches of 256, HybridShoot. At once: each population on its own stream of one "
            "process. TF32 is torch's `set_float32_matmul_precision('high')`; it is off unless "
            "you ask for it.",
            f"{torch.cuda.get_device_name()}, {description(command)}.",
            table(columns, rows),
        ]
    )
