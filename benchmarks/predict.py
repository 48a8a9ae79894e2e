"""Actions for one observation, and the environment steps that an evaluation takes.

`predict` acts with one member and keeps what it acts with. Beside it stands what it is instead of:
all members act in a player made for the call, and one of their actions is taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch

import headwise as hw
from benchmarks.machine import description
from benchmarks.results import renew, table
from benchmarks.timing import Meter, race
from headwise.training.evaluate import Player

ENV, MOST_US = "CartPole-v1", 100.0
CELLS = (("ppo", "shared", 1), ("ppo", "shared", 5), ("dqn", "vdn", 1), ("dqn", "vdn", 5))


class Counted(gym.Wrapper[Any, Any, Any, Any]):
    """Counts the steps of all of its kind."""

    steps = 0

    def step(self, action: Any) -> Any:
        """One step."""
        Counted.steps += 1
        return super().step(action)


def ways(
    algo: str, factorization: str, seeds: int, *, deterministic: bool
) -> tuple[Callable[[], object], Callable[[], object]]:
    """The two ways to an action."""
    agent = hw.Agent(algo, ENV, factorization=factorization, seeds=seeds)
    obs = np.array([0.01, 0.02, 0.03, 0.04], np.float32)
    everyone = np.broadcast_to(obs, (seeds, 1, 4))

    def among_all() -> object:
        units = Player(agent.loop).act(everyone, None, None if deterministic else 0)
        return agent.face.act(units[agent.best_member], batched=False)

    return lambda: agent.predict(obs, deterministic), among_all


def meter(step: Callable[[], object]) -> Meter:
    """Calls in a second of this thread's time on a processor: others may be busy meanwhile."""

    def measure(seconds: float) -> float:
        calls, start = 0, time.thread_time()
        while (passed := time.thread_time() - start) < seconds:
            for _ in range(50):
                step()
            calls += 50
        return calls / passed

    return measure


def evaluation(episodes: int) -> tuple[int, int]:
    """Environment steps of an evaluation of 16 copies, and steps of its episodes."""
    agent = hw.Agent("ppo", lambda: Counted(gym.make(ENV)))
    Counted.steps = 0
    found = agent.evaluate(episodes)
    return Counted.steps, int(found.lengths.sum())


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Measures, renews the section of RESULTS.md and returns it. No peer takes part."""
    head = description(command)
    torch.set_num_threads(1)
    rows = []
    for algo, factorization, seeds in CELLS:
        for deterministic in (True, False):
            pair = ways(algo, factorization, seeds, deterministic=deterministic)
            result = race([meter(one) for one in pair], rounds=rounds, seconds=seconds)
            low, high = result.spread[0]
            how = "greedy" if deterministic else "drawn"
            rows.append(
                [f"{algo} {factorization}, {how}", f"{seeds}"]
                + [f"{1e6 / rate:.0f}" for rate in result.rates]
                + [f"**{result.ratios[0]:.2f}** ({low:.2f} to {high:.2f})", f"<= {MOST_US:.0f}"]
            )
    taken = [[f"{n}", *(f"{steps:,}" for steps in evaluation(n))] for n in (1, 20)]
    section = "\n\n".join(
        [
            "## Acting and evaluating",
            f"One observation of {ENV}, [256, 256], 16 environment copies: microseconds of "
            "processor time of `agent.predict`, and of a player made for the call in which all "
            f"members act. Medians of {rounds} rounds of {seconds:g} s in turns. Below, "
            "the environment steps that `agent.evaluate` takes, beside those that count.",
            head + ".",
            table(["", "members", "predict, us", "all act, us", "times the rate", "aim, us"], rows),
            table(["episodes", "environment steps", "steps of the episodes"], taken),
        ]
    )
    renew("predict", section)
    return section
