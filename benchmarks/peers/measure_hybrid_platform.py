"""hybrid-platform 0.1.0 in Gymnasium's SyncVectorEnv. Argument: envs."""

import sys
import warnings

import gym_platform  # noqa: F401, registers Platform-v0
import gymnasium as gym
import numpy as np
from worker import serve

warnings.filterwarnings("ignore")
num_envs = int(sys.argv[1])
env = gym.vector.SyncVectorEnv(
    [lambda: gym.make("Platform-v0", disable_env_checker=True) for _ in range(num_envs)]
)
env.reset(seed=0)
rng = np.random.default_rng(0)
actions = [
    (
        rng.integers(0, 3, num_envs),
        tuple(rng.uniform(0, high, (num_envs, 1)).astype(np.float32) for high in (30, 720, 430)),
    )
    for _ in range(64)
]
turn = iter(range(10**12))
serve(lambda: env.step(actions[next(turn) % 64]), num_envs)
