"""Environments that agents are loaded into, and an agent that was saved."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import headwise as hw

PPO = {"net_arch": (8,), "n_steps": 20, "batch_size": 20, "n_epochs": 1, "num_envs": 2}
DQN = {"net_arch": (8,), "learning_starts": 16, "buffer_size": 200, "batch_size": 8, "num_envs": 4}


class Robot(gym.Env):
    """An episode of `length` steps; `closed` once somebody closes it."""

    observation_space = spaces.Box(-1, 1, (3,))
    action_space = spaces.Dict(grip=spaces.Discrete(3), joints=spaces.Box(-1, 1, (2,)))
    closed = False

    def __init__(self, length=10, tool=None, render_mode=None):
        self.length, self.tool, self.render_mode = length, tool, render_mode

    def reset(self, *, seed=None, options=None):
        assert not self.closed
        super().reset(seed=seed)
        self.time = 0
        return self._obs(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.time += 1
        return self._obs(), 1.0, False, self.time == self.length, {}

    def _obs(self):
        return self.np_random.uniform(-1, 1, 3).astype(np.float32)

    def close(self):
        self.closed = True


class Free(Robot):
    action_space = spaces.Box(-np.inf, np.inf, (2,))


class Masked(Robot):
    action_space = spaces.Discrete(3)

    def reset(self, **given):
        return super().reset(**given)[0], {"action_mask": np.array([1, 0, 0])}

    def step(self, action):
        obs, _, *ends, _ = super().step(action)
        return obs, float(action > 0), *ends, {"action_mask": np.array([1, 0, 0])}


class Team:
    """Two agents, each of whom earns 1 in every one of 4 steps."""

    metadata = {"name": "team"}  # noqa: RUF012
    possible_agents = ("a", "b")

    def __init__(self):
        self.agents = []

    def observation_space(self, agent):
        return spaces.Box(0, 9, (1,))

    def action_space(self, agent):
        return spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.agents, self.time = list(self.possible_agents), 0
        return self._each(np.zeros(1)), self._each({})

    def step(self, actions):
        self.time += 1
        over = self.time == 4
        told = tuple(self._each(x) for x in (np.zeros(1), 1.0, over, False, {}))
        self.agents = [] if over else self.agents
        return told

    def _each(self, value):
        return dict.fromkeys(self.agents, value)

    def close(self):
        pass


def saved(path, env, algo="ppo", **more):
    settings = PPO if algo == "ppo" else DQN
    agent = hw.Agent(algo, env, **{**settings, **more}).learn(80, progress=False)
    agent.save(path)
    return agent
