"""How long an action of eight heads takes: a chain, a graph of depth two, and heads alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces

import headwise as hw
from benchmarks.machine import description
from benchmarks.predict import meter
from benchmarks.results import renew, table
from benchmarks.timing import race

HEADS, OPTIONS, FEATURES, COPIES = 8, 8, 32, 16
HIDDEN = ((64, 64), (256, 256))
NAMES = [f"h{i}" for i in range(HEADS)]
GRAPHS: dict[str, hw.AR] = {
    "depth 1": hw.AR(parents={}),
    "depth 2": hw.AR(parents={name: ("h0",) for name in NAMES[1:]}),
    "depth 4": hw.AR(parents={f"h{i}": (f"h{i - 2}",) for i in range(2, HEADS)}),
    "the chain, depth 8": hw.AR(),
}


class Still(gym.Env[Any, Any]):
    """Eight heads of eight options in which nothing happens."""

    observation_space = spaces.Box(-1, 1, (FEATURES,), np.float32)
    action_space = spaces.Dict({name: spaces.Discrete(OPTIONS) for name in NAMES})

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Zeros."""
        super().reset(seed=seed)
        return np.zeros(FEATURES, np.float32), {}

    def step(self, action: Any) -> Any:
        """Zeros."""
        return np.zeros(FEATURES, np.float32), 0.0, False, False, {}


def ways(algo: str, graph: hw.AR, hidden: tuple[int, ...]) -> list[Callable[[], object]]:
    """To act in sixteen copies, and to predict in one."""
    settings: dict[str, Any] = {"net_arch": hidden, "factorization": graph, "num_envs": COPIES}
    agent = hw.Agent(algo, Still, **settings)
    obs, one = torch.zeros(1, COPIES, FEATURES), np.zeros(FEATURES, np.float32)
    return [lambda: agent.loop.algorithm.act(obs), lambda: agent.predict(one, deterministic=True)]


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Measures, renews the section of RESULTS.md and returns it. No peer takes part."""
    head = description(command)
    torch.set_num_threads(1)
    rows = []
    for algo in ("ppo", "dqn"):
        for hidden in HIDDEN:
            made = [ways(algo, graph, hidden) for graph in GRAPHS.values()]
            for number, what in enumerate((f"act, {COPIES} copies", "predict, one")):
                meters = [meter(one[number]) for one in made]
                result = race(meters, rounds=rounds, seconds=seconds)
                low, high = result.spread[1]
                rows.append(
                    [f"{algo} {list(hidden)}, {what}"]
                    + [f"{1e6 / rate:.0f}" for rate in result.rates]
                    + [f"**{result.ratios[1]:.2f}** ({low:.2f} to {high:.2f})"]
                )
    section = "\n\n".join(
        [
            "## Graphs over heads",
            f"An action of {HEADS} heads with {OPTIONS} options each by `ar`, microseconds of "
            f"processor time. Medians of {rounds} rounds of {seconds:g} s in turns.",
            head + ".",
            table(["", *GRAPHS, "depth 2: times the chain's rate"], rows),
        ]
    )
    renew("structure", section)
    return section
