"""Agents that are small enough to train in a second, for the tests of this folder."""

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces

import headwise as hw

SETTINGS = {
    "ppo": {"n_steps": 16, "batch_size": 32, "n_epochs": 2},
    "dqn": {
        "buffer_size": 500,
        "batch_size": 16,
        "learning_starts": 32,
        "exploration_initial_eps": 1.0,
    },
    "sac": {"buffer_size": 500, "batch_size": 16, "learning_starts": 32, "target_entropy_end": 0.1},
}


def small_agent(algo="ppo", env="HybridShoot", **more):
    settings = {"net_arch": (16, 16), "seeds": 2, "num_envs": 4, **SETTINGS[algo], **more}
    return hw.Agent(algo, env, **settings)


def states_equal(one, other, leave_out=()):
    """Whether two loops would go on in the same way: every tensor equal, to the bit."""
    ours, theirs = one.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    for part in ours.keys() - set(leave_out):
        assert ours[part].keys() == theirs[part].keys(), part
        for name, x in ours[part].items():
            y = theirs[part][name]
            same = torch.equal(torch.nan_to_num(x, 7.5), torch.nan_to_num(y, 7.5))
            assert same, (part, name)
    return True


class Countdown(gym.Env):
    """An episode lasts 1 to 9 steps, drawn at its start; each pays 1."""

    observation_space = spaces.Box(0, 10, (1,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(1, 10))
        return np.array([self.left], dtype=np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.array([self.left], dtype=np.float32), 1.0, self.left == 0, False, {}


class Kept(Countdown):
    """The same with an action of two parts, and a state that can be kept."""

    action_space = spaces.Tuple((spaces.Discrete(2), spaces.Box(-1, 1, (1,))))

    def get_state(self):
        return bytes([self.left])

    def set_state(self, state):
        (self.left,) = state
