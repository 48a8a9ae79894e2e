"""What a population costs: eight members against one, and the time spent outside kernels."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.machine import description
from benchmarks.results import renew, table
from benchmarks.timing import Race, meter, race
from headwise import _core
from headwise.algorithms.ppo import PPO
from headwise.envs.make import make_vec
from headwise.factorizations import factorizations
from headwise.training.build import make_loop
from headwise.training.loop import Loop

MEMBERS = 8
SLOTS = 16
ROLLOUT = 2048
MOST_TIMES = 2.5
"""What training eight members may cost, as a multiple of training one."""
MOST_OUTSIDE = 0.15
"""The share of the time that may go to anything but kernels."""


def loop_of(members: int, hidden: tuple[int, ...], rollout: int = ROLLOUT) -> Loop:
    """PPO shared on the decoupler with the settings of the study."""
    seeds = range(members)
    env = make_vec("ContextualDecoupler", seeds, SLOTS)
    config = PPO(hidden=hidden, lr=1e-3, rollout=rollout, minibatch=128, epochs=4)
    return make_loop(env, config, factorizations.get("shared")(), seeds, 100 * rollout)


def one_update(loop: Loop) -> Callable[[], None]:
    """Collects a rollout and learns from it: the unit of work of both sides."""
    rollout = loop.algorithm.plan.length * SLOTS  # type: ignore[union-attr]
    return lambda: loop.run(loop.env_steps + rollout)


def times(rounds: int, seconds: float, rollout: int = ROLLOUT) -> Race:
    """How often the wall time of one member goes into that of eight: the first ratio."""
    loops = [loop_of(members, (64, 64), rollout) for members in (1, MEMBERS)]
    return race([meter(one_update(loop)) for loop in loops], rounds=rounds, seconds=seconds)


# --- where the time goes --------------------------------------------------------------------------


class Clock:
    """Adds up the time of the functions it wraps."""

    def __init__(self) -> None:
        self.total = 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **settings: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **settings)
            finally:
                self.total += time.perf_counter() - start

        return call


@contextmanager
def compiled_kernels_timed(loop: Loop, clock: Clock) -> Iterator[None]:
    """Our own compiled kernels: the environment's step, Adam, and random numbers."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(loop.env, "step", clock.timed(loop.env.step)))
        for name in ("adam_step", "fill_uniforms", "tanh"):
            kernel = clock.timed(getattr(_core, name))
            stack.enter_context(mock.patch.object(_core, name, kernel))
        yield


def cost_of_nothing() -> float:
    """Seconds that the profiler says an operation on a single number takes: dispatch, no work."""
    one, out = torch.ones(1), torch.empty(1)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(2000):
            torch.add(one, one, out=out)
    (event,) = (event for event in seen.key_averages() if event.key == "aten::add")
    return float(event.self_cpu_time_total) * 1e-6 / event.count


def shares(members: int, updates: int, rollout: int = ROLLOUT) -> tuple[float, float]:
    """The shares of the wall time in torch's kernels and in our own, at [256, 256].

    Torch's are the self times of all `aten::` operations in torch.profiler, less what an operation
    costs that does nothing: dispatch is no work. Ours are timed by a clock around them. The wall
    time is that of the same updates without a profiler.
    """
    torch.set_num_threads(1)  # as a study runs: one process on each core
    loop = loop_of(members, (256, 256), rollout)
    update, clock, nothing = one_update(loop), Clock(), cost_of_nothing()
    update()  # warm up
    start = time.perf_counter()
    for _ in range(updates):
        update()
    wall = time.perf_counter() - start
    with compiled_kernels_timed(loop, clock), profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(updates):
            update()
    torchs = sum(
        max(event.self_cpu_time_total * 1e-6 - event.count * nothing, 0.0)
        for event in seen.key_averages()
        if event.key.startswith("aten::")
    )
    return torchs / wall, clock.total / wall


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Measures, renews the section of RESULTS.md and returns it. No peer takes part."""
    head = description(command)
    threads = torch.get_num_threads()
    result = times(rounds, seconds)
    low, high = result.spread[0]
    one, many = result.rates
    cost = [
        f"{MEMBERS}",
        f"{1e3 / one:.0f}",
        f"{1e3 / many:.0f}",
        f"**{result.ratios[0]:.2f}** ({low:.2f} to {high:.2f})",
        f"< {MOST_TIMES}",
    ]
    rows = []
    for members in (1, MEMBERS):
        found = [shares(members, updates=2) for _ in range(max(1, rounds // 2))]
        torchs, ours = (statistics.median(column) for column in zip(*found, strict=True))
        rest = 1.0 - torchs - ours
        rows.append(
            [f"{members}", *(f"{x:.1%}" for x in (torchs, ours)), f"**{rest:.1%}**",
             f"< {MOST_OUTSIDE:.0%}"]
        )  # fmt: skip
    section = "\n\n".join(
        [
            "## Populations",
            f"PPO shared on ContextualDecoupler, {SLOTS} slots a member, rollouts of {ROLLOUT}, "
            f"{threads} threads at most. Above: the time of a rollout and its "
            f"update at [64, 64], medians of {rounds} rounds of {seconds:g} s in turns. Below, at "
            "[256, 256] and one thread, as a study runs on each core: shares of the time in "
            "torch's kernels (self time of its operations in torch.profiler, less what one on one "
            "number takes) and in our compiled ones (environment, Adam, random numbers, tanh; a "
            "clock around each); the rest is Python and dispatch.",
            head + ".",
            table(
                ["members", "one member, ms", "all members, ms", "times the time", "target"],
                [cost],
            ),
            table(["members", "torch's kernels", "our kernels", "outside", "target"], rows),
        ]
    )
    renew("population", section)
    return section
