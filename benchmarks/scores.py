"""What is learned, not how fast: our scores beside Stable-Baselines3's after equally many steps."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.machine import description
from benchmarks.peer import SCRIPTS
from benchmarks.results import renew, table
from headwise.report.statistics import welch

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from settings import SETTINGS, STEPS

SEEDS = range(16)
TASKS = {
    "ppo": ("Lander continuous, PPO shared", "Lander", "continuous", "shared"),
    "sac": ("Lander continuous, SAC shared", "Lander", "continuous", "shared"),
    "dqn": ("HybridShoot discrete, DQN joint, plain network", "HybridShoot", "discrete", "joint"),
}


AS_THEIRS = {
    # What Stable-Baselines3 has where nobody says otherwise, and we have not. Its DQN moves the
    # target once after a step of all environments, here after four updates; ours after each. Its
    # network is plain.
    "dqn": {
        "exploration_initial_eps": 1.0, "exploration_fraction": 0.1, "loss": "huber",
        "tau": 1.0 - 0.99**0.25, "dueling": False,
    },
    "sac": {
        "activation": "relu", "actor_lr_scale": 1.0, "ent_coef": "auto_1.0", "max_grad_norm": 1e6,
        "entropy_bonus": "whole",
    },
}  # fmt: skip


def ours(algorithm: str) -> list[float]:
    """The mean return of 100 greedy episodes of every seed."""
    import headwise as hw

    _, env, view, factorization = TASKS[algorithm]
    settings = {**SETTINGS[algorithm], **AS_THEIRS.get(algorithm, {})}
    agent = hw.Agent(
        algorithm, f"headwise/{env}-v0", factorization=factorization, view=view,
        seeds=len(SEEDS), num_envs=16, **settings,
    )  # fmt: skip
    agent.learn(STEPS[algorithm], progress=False)
    return [float(score) for score in agent.evaluate(episodes=100).scores]


def theirs(algorithm: str, python: str) -> list[float]:
    """The same of the peer, two processes of one thread at a time."""

    def one(seed: int) -> float:
        command = [python, "score_sb3.py", algorithm, str(STEPS[algorithm]), str(seed)]
        done = subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True, check=True)
        return float(done.stdout.split()[-1])

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, SEEDS))


def run(peers: str | None, *, rounds: int, seconds: float, command: str) -> str:
    """Trains both sides and renews RESULTS.md."""
    if peers is None:
        return "Scores are compared with peers: give their Python with --peers."
    head = description(command)
    rows: list[list[str]] = []
    for algorithm, (what, *_) in TASKS.items():
        sides = [ours(algorithm), theirs(algorithm, peers)]
        found = welch(*sides)
        cells = [what, f"{STEPS[algorithm]:,}"]
        cells += [f"{np.mean(x):.1f} ({np.std(x, ddof=1):.1f})" for x in sides]
        cells.append(f"{found.difference:+.1f} [{found.low:+.1f}, {found.high:+.1f}]")
        rows.append(cells)
        sys.stderr.write(" | ".join(cells) + "\n")
        renew("scores", section(rows, head))  # whatever comes, this is kept
    return section(rows, head)


def section(rows: list[list[str]], head: str) -> str:
    """The section of RESULTS.md."""
    return "\n\n".join(
        [
            "## Scores",
            "Mean return of 100 greedy episodes after equally many steps with the same settings "
            "(`benchmarks/peers/settings.py`, and `AS_THEIRS` in `benchmarks/scores.py` for what "
            f"only one side names), {len(SEEDS)} seeds: mean (deviation), and the difference with "
            "its 95 % interval (Welch).",
            head + ".",
            table(["task", "steps", "ours", "Stable-Baselines3 2.9.2", "difference"], rows),
        ]
    )
