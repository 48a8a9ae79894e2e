"""Updates of Stable-Baselines3 (sb3) and SBX (sbx): ppo, sac; arguments: library, algorithm, sizes.

Sizes are hidden units, rows of a minibatch, numbers of an observation, and numbers or options of an
action (PPO: options). Nothing is played: observations are random. Rates are in the process's
processor time, and one thread computes.
"""

import os
import sys
import time

LIBRARY, ALGORITHM, HIDDEN, ROWS, OBS, ACTIONS = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
time.perf_counter = time.process_time  # what the worker measures by

import gymnasium as gym  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from worker import serve  # noqa: E402

torch.set_num_threads(1)
if LIBRARY == "sbx":
    from sbx import PPO, SAC
else:
    from stable_baselines3 import PPO, SAC


class Noise(gym.Env):
    """Random observations, and episodes of 100 steps."""

    def __init__(self):
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (OBS,), np.float32)
        numbers = gym.spaces.Box(-1.0, 1.0, (ACTIONS,), np.float32)
        self.action_space = gym.spaces.Discrete(ACTIONS) if ALGORITHM == "ppo" else numbers
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.np_random.uniform(-1, 1, OBS).astype(np.float32), {}

    def step(self, action):
        self.steps += 1
        obs = self.np_random.uniform(-1, 1, OBS).astype(np.float32)
        return obs, float(obs.sum()), False, self.steps >= 100, {}


def main():
    """Makes the learner, lets it collect once, and serves updates."""
    given = {"policy_kwargs": {"net_arch": [HIDDEN, HIDDEN]}, "seed": 0, "batch_size": ROWS}
    if LIBRARY == "sb3":
        given["device"] = "cpu"
    if ALGORITHM == "ppo":
        model = PPO("MlpPolicy", Noise(), n_steps=2048, n_epochs=10, **given)
        model.learn(2048)
        serve(model.train, 10 * 2048 // ROWS)
    else:
        model = SAC("MlpPolicy", Noise(), learning_starts=1000, **given)
        model.learn(1100)
        # SBX compiles a call for its number of updates, and does them all in it.
        serve(lambda: model.train(gradient_steps=8, batch_size=ROWS), 8)


main()
