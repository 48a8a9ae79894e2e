"""Our side of `python -m benchmarks one_seed`: a task by its number, and the seeds; one core."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from typing import Any

from one_seed_tasks import TASKS, TINY, WARMUP, chunk_of
from worker import serve

import headwise as hw


def main() -> None:
    """Makes the agent, lets it begin to learn, and serves."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    task: dict[str, Any] = list(TASKS.values())[int(sys.argv[1])]
    seeds, chunk = int(sys.argv[2]), chunk_of(task)
    settings = {name: task[name] for name in ("num_envs", "batch_size")}
    settings |= {"net_arch": tuple(task["net_arch"]), "learning_rate": TINY}
    if "view" in task:
        settings["view"] = task["view"]
    if task["algo"] == "ppo":  # as Stable-Baselines3 has them
        settings |= {
            "n_steps": task["rollout"] // task["num_envs"], "n_epochs": task["n_epochs"],
            "activation": "tanh", "critic_activation": "tanh", "branch_width": 0,
            "normalize_advantage": "batch", "ent_coef": 0.0,
        }  # fmt: skip
    else:
        settings |= {"buffer_size": 100_000, "learning_starts": WARMUP}
        settings["updates_per_step"] = task["updates_per_step"]
        if task["algo"] == "dqn":
            settings |= {"dueling": False, "loss": "huber"}
    agent = hw.Agent(task["algo"], task["env"], seeds=seeds, **settings)
    if task["algo"] != "ppo":
        agent.learn(WARMUP + chunk, progress=False)
    serve(lambda: agent.learn(chunk, progress=False), chunk * seeds)


main()
