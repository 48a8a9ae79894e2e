"""Training from pictures of 64 x 64 x 3 with the CNN of the Nature paper, beside SB3's CnnPolicy.

One seed on one thread, and five seeds on two: ours as one population, the peer's as runs in two
processes of one thread, which is its best way.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

import headwise as hw
from benchmarks.machine import description
from benchmarks.peer import SCRIPTS, Peer
from benchmarks.results import renew, table
from benchmarks.timing import Meter, race

sys.path.append(str(SCRIPTS))
import pixels

MANY, AIM = 5, 1.2


def settings(algorithm: str) -> dict[str, Any]:
    """What the peer has, under our names."""
    common: dict[str, Any] = {"net_arch": (pixels.HIDDEN,), "num_envs": pixels.ENVS}
    if algorithm == "ppo":
        return common | {
            "n_steps": pixels.PPO_ROLLOUT // pixels.ENVS, "batch_size": pixels.PPO_BATCH,
            "n_epochs": pixels.PPO_EPOCHS, "share_encoder": True, "branch_width": 0,
        }  # fmt: skip
    return common | {
        "batch_size": pixels.DQN_BATCH, "buffer_size": pixels.DQN_REPLAY,
        "learning_starts": pixels.DQN_WARMUP,
        "updates_per_step": pixels.DQN_UPDATES, "dueling": False,
    }  # fmt: skip


def ours(algorithm: str, seeds: int) -> Meter:
    """Environment steps of all seeds in a second."""
    agent = hw.Agent(algorithm, pixels.Pixels, seeds=seeds, encoder="nature", **settings(algorithm))
    chunk = pixels.PPO_ROLLOUT if algorithm == "ppo" else 256
    agent.learn(2 * chunk, progress=False)

    def measure(seconds: float) -> float:
        torch.set_num_threads(min(seeds, 2))
        steps, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            agent.learn(chunk, progress=False)
            steps += chunk
        return seeds * steps / passed

    return measure


def theirs(python: str, algorithm: str, processes: int) -> tuple[Meter, Callable[[], None]]:
    """The same of the peer, in processes that run side by side; and what ends them."""
    peers = [Peer(python, "train_images", [algorithm]) for _ in range(processes)]
    pool = ThreadPoolExecutor(processes)

    def close() -> None:
        for peer in peers:
            peer.close()
        pool.shutdown()

    return lambda seconds: sum(pool.map(lambda peer: peer(seconds), peers)), close


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Measures, renews the section of RESULTS.md and returns it."""
    if peers is None:
        raise SystemExit("images needs --peers: a Python with stable-baselines3")
    head, rows = description(command), []
    for algorithm in ("ppo", "dqn"):
        for seeds in (1, MANY):
            other, close = theirs(peers, algorithm, 1 if seeds == 1 else 2)
            result = race([ours(algorithm, seeds), other], rounds=rounds, seconds=seconds)
            close()
            low, high = result.spread[0]
            times = f"**{result.ratios[0]:.2f}** ({low:.2f} to {high:.2f})"
            rates = [f"{rate:,.0f}" for rate in result.rates]
            rows.append([algorithm, f"{seeds}", *rates, times, f">= {AIM}"])
    section = "\n\n".join(
        [
            "## Training from pictures",
            "Pictures of 64 x 64 x 3, the CNN of the Nature paper, 8 environment copies a seed: "
            "environment steps of all seeds in a second, learning included. One seed on one "
            "thread, five on two; the peer, stable-baselines3's CnnPolicy, in as many processes "
            f"of one thread. Medians of {rounds} rounds in turns.",
            head + ".",
            table(["", "seeds", "ours", "the peer", "times the rate", "aim"], rows),
        ]
    )
    renew("images", section)
    return section
