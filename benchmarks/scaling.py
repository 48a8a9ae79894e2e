"""What scaling observations by their bounds gains: scores with it and without, after equal steps.

`python -m benchmarks.scaling --kept scores.jsonl` trains what the file does not hold yet, five
seeds as one population with default settings, and renews RESULTS.md. Several may run beside each
other, on parts of the tasks (`--only "LunarLander*"`). Hopper needs `pip install mujoco`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from scipy import stats

import headwise as hw
from benchmarks.machine import description
from benchmarks.results import renew, table

SEEDS = 5
EPISODES = 20


class Desk(gym.Env[dict[str, Any], dict[str, Any]]):
    """A lamp on a desk is moved over a mark and turned as the mark is, by a Dict action.

    Positions go from -50 to 50 and angles from 0 to 360, as users write them down. A step earns 1
    where the lamp is over the mark and turned as it is, and less the further off it is; an episode
    has 100 steps.
    """

    observation_space = spaces.Dict(
        lamp=spaces.Box(-50.0, 50.0, (2,)),
        mark=spaces.Box(-50.0, 50.0, (2,)),
        angles=spaces.Box(0.0, 360.0, (2,)),
    )
    action_space = spaces.Dict(move=spaces.Box(-5.0, 5.0, (2,)), turn=spaces.Discrete(3))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Puts lamp and mark anywhere."""
        super().reset(seed=seed)
        self._lamp, self._mark = self.np_random.uniform(-50.0, 50.0, (2, 2))
        self._angles, self._steps = self.np_random.uniform(0.0, 360.0, 2), 0
        return self._seen(), {}

    def step(
        self, action: dict[str, Any]
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Moves the lamp, and turns it by 10 degrees to the left, not at all or to the right."""
        self._lamp = np.clip(self._lamp + action["move"], -50.0, 50.0)
        self._angles[0] = (self._angles[0] + 10.0 * (int(action["turn"]) - 1)) % 360.0
        self._steps += 1
        far = float(np.linalg.norm(self._lamp - self._mark))
        turned = abs((self._angles[0] - self._angles[1] + 180.0) % 360.0 - 180.0)
        reward = 0.5 * np.exp(-far / 10.0) + 0.5 * np.exp(-turned / 30.0)
        return self._seen(), float(reward), False, self._steps == 100, {}

    def _seen(self) -> dict[str, Any]:
        seen = {"lamp": self._lamp, "mark": self._mark, "angles": self._angles}
        return {name: np.asarray(x, dtype=np.float32) for name, x in seen.items()}


class Task(NamedTuple):
    """What is trained in an environment, and for how many steps of each seed."""

    env: Any
    steps: dict[str, int]
    """By algorithm."""
    view: str | None = None


TASKS = {
    "CartPole-v1": Task("CartPole-v1", {"ppo": 50_000, "dqn": 20_000}),
    "Acrobot-v1": Task("Acrobot-v1", {"ppo": 100_000, "dqn": 20_000}),
    "MountainCarContinuous-v0": Task("MountainCarContinuous-v0", {"ppo": 50_000, "sac": 10_000}),
    "Pendulum-v1": Task("Pendulum-v1", {"ppo": 100_000, "sac": 10_000}),
    "LunarLander-v3": Task("LunarLander-v3", {"ppo": 500_000, "dqn": 50_000}),
    "Hopper-v5": Task("Hopper-v5", {"ppo": 100_000, "sac": 10_000}),
    "desk": Task(Desk, {"ppo": 100_000, "sac": 10_000}),
    "HybridShoot": Task("HybridShoot", {"ppo": 100_000, "sac": 10_000}),
    "Platform": Task("Platform", {"ppo": 100_000, "sac": 10_000}),
    "CoopPush": Task("CoopPush", {"ppo": 100_000, "sac": 10_000}),
}
OURS = ("HybridShoot", "Platform", "CoopPush")
"""Compiled ones, which "auto" leaves as they are."""


class Cell(NamedTuple):
    """One population."""

    task: str
    algorithm: str
    scaling: str
    steps: int


def cells() -> list[Cell]:
    """Everything that is trained."""
    return [
        Cell(name, algorithm, scaling, steps)
        for name, task in TASKS.items()
        for algorithm, steps in task.steps.items()
        for scaling in (("off",) if name in OURS else ("off", "auto"))
    ]


def measured(cell: Cell) -> list[float]:
    """The mean return of greedy episodes of every seed."""
    task = TASKS[cell.task]
    agent = hw.Agent(
        cell.algorithm,
        task.env,
        view=task.view,
        seeds=SEEDS,
        normalize_obs=False if cell.scaling == "off" else "auto",
    )
    agent.learn(cell.steps, progress=False)
    return [float(score) for score in agent.evaluate(EPISODES).scores]


def kept(path: Path) -> dict[Cell, list[float]]:
    """What a file holds."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {Cell(*row["cell"]): row["scores"] for row in map(json.loads, lines)}


@cache
def _half(number: int) -> float:
    return float(stats.t.ppf(0.975, number - 1) / number**0.5)


def told(scores: list[float] | None) -> str:
    """The mean over seeds, with Student's 95 % interval of it."""
    if scores is None:
        return ""
    mean, half = float(np.mean(scores)), float(np.std(scores, ddof=1)) * _half(len(scores))
    return f"{mean:.1f} [{mean - half:.1f}, {mean + half:.1f}]"


def section(found: dict[Cell, list[float]], head: str) -> str:
    """The section of RESULTS.md."""
    rows = []
    for name, task in TASKS.items():
        for algorithm, steps in task.steps.items():
            off, auto = (
                found.get(Cell(name, algorithm, scaling, steps)) for scaling in ("off", "auto")
            )
            if off is None and auto is None:
                continue
            last = "as it is" if name in OURS else told(auto)
            rows.append([name, algorithm.upper(), f"{steps:,}", told(off), last])
    return "\n\n".join(
        [
            "## Scaling observations",
            f"Mean return of {EPISODES} greedy episodes after equally many steps, all settings but "
            f"`normalize_obs` as they are by default, {SEEDS} seeds as one population on one core: "
            "mean over seeds, and Student's 95 % interval of it. Compiled environments are left as "
            "they are.",
            head + ".",
            table(["task", "algorithm", "steps", "off", "auto"], rows),
        ]
    )


def main() -> None:
    """Trains what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", type=Path, required=True, help="scores by cell, JSON lines")
    parser.add_argument("--only", default="*", help="a pattern of task/algorithm/scaling")
    options = parser.parse_args()
    torch.set_num_threads(1)
    head = description("python -m benchmarks.scaling --kept scores.jsonl")
    for cell in cells():
        name = f"{cell.task}/{cell.algorithm}/{cell.scaling}"
        if cell in kept(options.kept) or not fnmatch(name, options.only):
            continue
        start = time.monotonic()
        scores = measured(cell)
        with options.kept.open("a") as file:
            file.write(json.dumps({"cell": cell, "scores": scores}) + "\n")
        sys.stderr.write(f"{name}: {told(scores)} in {time.monotonic() - start:.0f} s\n")
        renew("scaling", section(kept(options.kept), head))
    sys.stdout.write(section(kept(options.kept), head) + "\n")


if __name__ == "__main__":
    main()
