"""`headwise bench`: how fast environments and training are on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from headwise.checks import checked_count
from headwise.cli.flags import asked
from headwise.envs.make import make_vec
from headwise.envs.native import NATIVE_NAMES, env_id
from headwise.envs.reference import random_policy
from headwise.training.matmul_precision import MatmulPrecision, matmul_precision_as, not_as_asked


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Benchmark environments and training on your hardware: steps per second."""

    seconds: float = 1.0
    """Minimum time of each measurement."""
    slots: int = 1024
    """Environment copies when an environment is stepped without training."""
    seeds: int = 5
    """Seeds to train at once."""
    env: str = "HybridShoot"
    """The environment to train in."""
    device: str = "cpu"
    """Device: cpu, cuda, or auto, which measures where ppo is faster."""
    matmul_precision: MatmulPrecision | None = None
    """Precision of matrix multiplication: float32, tf32 (GPUs) or bf16 (CPUs with AVX512-BF16);
    PyTorch's setting if not given."""


def main(argv: Sequence[str]) -> int:
    """Measures as the words of the command line say."""
    given = asked(Bench, argv, "bench")
    checked_count("slots", given.slots)
    checked_count("seeds", given.seeds)
    console = Console()
    device = _device(given)
    table = Table("environment alone", "steps/s", box=None, header_style="bold")
    for name in NATIVE_NAMES:
        table.add_row(env_id(name), f"{env_rate(name, given.slots, given.seconds):,.0f}")
    console.print(table)
    table = Table(
        f"training, {given.seeds} seeds in {given.env} on {device}", "steps/s", box=None,
        header_style="bold",
    )  # fmt: skip
    for algo in ("ppo", "dqn", "sac"):
        with matmul_precision_as(given.matmul_precision):
            rate = training_rate(algo, given.env, given.seeds, given.seconds, device)
        table.add_row(f"{algo} shared, 16 slots each, default settings", f"{rate:,.0f}")
    console.print(table)
    console.print("Steps of all slots and seeds together.", highlight=False)
    if missing := not_as_asked(given.matmul_precision, device):
        console.print(f"warning: {missing}", highlight=False)
    return 0


def _device(given: Bench) -> str:
    """Where to measure, found once for all algorithms."""
    from headwise.agent import Agent

    return Agent("ppo", given.env, seeds=given.seeds, device=given.device).device


def env_rate(name: str, slots: int, seconds: float) -> float:
    """Steps a second of random play in a compiled environment."""
    env = make_vec(name, [0], slots)
    obs = env.reset()
    act = random_policy(env.spec, np.random.default_rng(0))
    actions = [act(obs[0])[None] for _ in range(8)]  # drawn beforehand: only steps are measured

    def play(number: int) -> None:
        env.step(actions[number % len(actions)])

    return _rate(play, seconds) * slots


def training_rate(
    algo: str, env: str, seeds: int, seconds: float, device: str = "cpu", **settings: Any
) -> float:
    """Environment steps a second of all seeds, updates included."""
    from headwise.agent import Agent
    from headwise.algorithms.base import RolloutPlan

    loop = Agent(algo, env, seeds=seeds, device=device, **settings).loop
    plan, slots = loop.algorithm.plan, loop.lazy_env.num_slots
    # Whole rounds of acting and learning are timed, after everything has happened once.
    if isinstance(plan, RolloutPlan):
        per_round = plan.length * slots
        loop.run(per_round)
    else:
        per_round = 16 * slots
        loop.run(plan.learning_starts + per_round)

    def train(number: int) -> None:
        loop.run(loop.env_steps + per_round)

    return _rate(train, seconds) * per_round * seeds


def _rate(call: Callable[[int], None], seconds: float) -> float:
    start, number = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - start) < seconds or not number:
        call(number)
        number += 1
    return number / elapsed if elapsed else float("inf")
