"""Stable-Baselines3, training on HybridShoot with the paper's settings and one torch thread.

Argument: dqn (the 300 joint actions) or sac (three numbers).
"""

import sys

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.vec_env import VecEnv
from tasks import Shoot
from worker import serve

NUM_ENVS, VECTOR_STEPS, LEARNING_STARTS = 16, 64, 10_000
torch.set_num_threads(1)


class ShootVec(VecEnv):
    """The vector environment of HybridShoot's authors, as Stable-Baselines3 wants it."""

    def __init__(self, kind):
        self.env = Shoot(NUM_ENVS)
        space = gym.spaces.Discrete(300) if kind == "dqn" else gym.spaces.Box(-1.0, 1.0, (3,))
        super().__init__(NUM_ENVS, gym.spaces.Box(0.0, 1.0, (9,)), space)

    def reset(self):
        return self.env.reset()

    def step_async(self, actions):
        self.actions = actions

    def step_wait(self):
        a = self.actions
        if a.ndim == 1:
            target, aim = a // 100, (np.stack([a // 10 % 10, a % 10], axis=1) + 0.5) * 0.1
        else:
            target = np.minimum(2, ((a[:, 0] + 1) * 1.5).astype(np.int32))
            aim = (a[:, 1:].astype(np.float64) + 1) * 0.5
        obs, successor, reward, terminated, truncated = self.env.step_at(
            target.astype(np.int32), aim
        )
        infos = [{} for _ in range(NUM_ENVS)]
        for i in np.flatnonzero(terminated | truncated):
            cut = bool(truncated[i] and not terminated[i])
            infos[i] = {"terminal_observation": successor[i], "TimeLimit.truncated": cut}
        return obs, reward, terminated | truncated, infos

    def close(self): ...
    def get_attr(self, attr_name, indices=None):
        return [None] * NUM_ENVS

    def set_attr(self, attr_name, value, indices=None): ...
    def env_method(self, method_name, *args, indices=None, **kwargs):
        return [None] * NUM_ENVS

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * NUM_ENVS


model = {"dqn": DQN, "sac": SAC}[sys.argv[1]](
    "MlpPolicy",
    ShootVec(sys.argv[1]),
    policy_kwargs={"net_arch": [256, 256]},
    device="cpu",
    seed=0,
    learning_rate=5e-4,
    batch_size=256,
    buffer_size=100_000,
    learning_starts=LEARNING_STARTS,
    train_freq=1,
    gradient_steps=NUM_ENVS // 4,
)
model.learn(LEARNING_STARTS)
serve(
    lambda: model.learn(VECTOR_STEPS * NUM_ENVS, reset_num_timesteps=False),
    VECTOR_STEPS * NUM_ENVS,
)
