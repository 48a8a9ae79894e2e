"""What a population costs: eight members against one, and the time spent outside programs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch

from benchmarks.machine import description
from benchmarks.results import renew, table
from benchmarks.timing import Race, meter, race
from headwise.algorithms.ppo import PPO
from headwise.envs.make import make_vec
from headwise.ops import Recorded
from headwise.training.build import make_loop
from headwise.training.config import RunConfig
from headwise.training.loop import Loop

MEMBERS = 8
SLOTS = 16
ROLLOUT = 2048
MOST_TIMES = 2.5
"""What training eight members may cost, as a multiple of training one."""
MOST_OUTSIDE = 0.15
"""The share of the time that may go to anything but programs and environments."""


def loop_of(members: int, hidden: tuple[int, ...], rollout: int = ROLLOUT) -> Loop:
    """PPO shared on the decoupler with the settings of the study."""
    seeds = range(members)
    env = make_vec("ContextualDecoupler", seeds, SLOTS)
    config = PPO(
        net_arch=hidden, learning_rate=1e-3, n_steps=rollout // SLOTS, batch_size=128, n_epochs=4
    )
    plan = RunConfig.of(config, factorization="shared", total_timesteps=100 * rollout)
    return make_loop(env, plan, seeds)


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
def programs_timed(loop: Loop, clock: Clock) -> Iterator[None]:
    """What is recorded (acting, learning) and the environment's step."""
    with ExitStack() as stack:
        if getattr(loop.env, "compiled", None) is None:  # else its step is a part of a program
            stack.enter_context(mock.patch.object(loop.env, "step", clock.timed(loop.env.step)))
        timed = clock.timed(Recorded.__call__)
        method = lambda *given, **settings: timed(*given, **settings)  # noqa: E731
        stack.enter_context(mock.patch.object(Recorded, "__call__", method))
        yield


def share(members: int, updates: int, rollout: int = ROLLOUT) -> float:
    """The share of the wall time in recorded programs and the environment, at [256, 256]."""
    torch.set_num_threads(1)  # as a study runs: one process on each core
    loop = loop_of(members, (256, 256), rollout)
    update, clock = one_update(loop), Clock()
    update()  # warm up
    with programs_timed(loop, clock):
        start = time.perf_counter()
        for _ in range(updates):
            update()
        return clock.total / (time.perf_counter() - start)


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
        found = [share(members, updates=2) for _ in range(max(1, rounds // 2))]
        inside = statistics.median(found)
        rows.append(
            [f"{members}", f"{inside:.1%}", f"**{1.0 - inside:.1%}**", f"< {MOST_OUTSIDE:.0%}"]
        )
    section = "\n\n".join(
        [
            "## Populations",
            f"PPO shared on ContextualDecoupler, {SLOTS} slots a member, rollouts of {ROLLOUT}, "
            f"{threads} threads at most. Above: the time of a rollout and its "
            f"update at [64, 64], medians of {rounds} rounds of {seconds:g} s in turns. Below, at "
            "[256, 256] and one thread, as a study runs on each core: the share of the time in "
            "recorded programs (acting, learning) and in the environment's step, by a clock around "
            "each; the rest is Python and what it copies.",
            head + ".",
            table(
                ["members", "one member, ms", "all members, ms", "times the time", "target"],
                [cost],
            ),
            table(["members", "programs and environment", "outside", "target"], rows),
        ]
    )
    renew("population", section)
    return section
