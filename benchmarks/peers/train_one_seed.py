"""Stable-Baselines3 (sb3) or SBX (sbx) on a task by its number, one seed, one core."""

import os
import sys

LIBRARY, NUMBER = sys.argv[1], int(sys.argv[2])
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import torch  # noqa: E402
from one_seed_tasks import TASKS, TINY, WARMUP, chunk_of  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from worker import serve  # noqa: E402

torch.set_num_threads(1)
if LIBRARY == "sbx":
    import flax.linen as nn
    from sbx import DQN, PPO, SAC

    tanh = nn.tanh
else:
    from stable_baselines3 import DQN, PPO, SAC

    tanh = torch.nn.Tanh


def main():
    """Makes the learner, lets it begin to learn, and serves."""
    task = list(TASKS.values())[NUMBER]
    if task["env"].startswith("headwise/"):
        import headwise  # noqa: F401
    settings = {"view": task["view"]} if "view" in task else {}
    env = make_vec_env(task["env"], n_envs=task["num_envs"], env_kwargs=settings)
    given = {"policy_kwargs": {"net_arch": task["net_arch"]}, "seed": 0, "learning_rate": TINY}
    given["batch_size"] = task["batch_size"]
    if LIBRARY == "sb3":
        given["device"] = "cpu"
    chunk = chunk_of(task)
    if task["algo"] == "ppo":
        given["policy_kwargs"]["activation_fn"] = tanh
        steps = task["rollout"] // task["num_envs"]
        model = PPO("MlpPolicy", env, n_steps=steps, n_epochs=task["n_epochs"], **given)
    else:
        often = task["num_envs"] * task["updates_per_step"]
        pace = {"train_freq": 1, "gradient_steps": int(often)}
        if often < 1:
            pace = {"train_freq": int(1 / often), "gradient_steps": 1}
        kind = {"dqn": DQN, "sac": SAC}[task["algo"]]
        given |= {"buffer_size": 100_000, "learning_starts": WARMUP, **pace}
        model = kind("MlpPolicy", env, **given)
        model.learn(WARMUP + chunk)
    serve(lambda: model.learn(chunk, reset_num_timesteps=False, log_interval=10**9), chunk)


main()
