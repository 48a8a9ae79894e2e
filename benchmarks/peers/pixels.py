"""An environment of pictures that costs next to nothing: what is timed is who learns from them."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

SIZE, ACTIONS, LENGTH = 64, 6, 200
ENVS, PPO_ROLLOUT, PPO_BATCH, PPO_EPOCHS = 8, 1024, 256, 4
DQN_BATCH, DQN_REPLAY, DQN_WARMUP, DQN_UPDATES = 32, 5000, 256, 0.25
HIDDEN = 64


class Pixels(gym.Env):
    """Pictures of noise, and a reward for an action that the brightest corner says."""

    observation_space = spaces.Box(0, 255, (SIZE, SIZE, 3), np.uint8)
    action_space = spaces.Discrete(ACTIONS)

    def reset(self, *, seed=None, options=None):
        """A new episode."""
        super().reset(seed=seed)
        self.pool = self.np_random.integers(0, 255, (16, SIZE, SIZE, 3)).astype(np.uint8)
        self.steps = 0
        return self.pool[0], {}

    def step(self, action):
        """The next picture."""
        reward = float(self.pool[self.steps % 16, 0, 0, 0] % ACTIONS == action)
        self.steps += 1
        return self.pool[self.steps % 16], reward, False, self.steps >= LENGTH, {}
