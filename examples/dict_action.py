"""Your own environment with a Dict action: buttons and dials, trained as it is."""

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

import headwise as hw


class Robot(gym.Env):
    """Grip the part that is shown, and move the arm to where it lies."""

    observation_space = Dict(part=Discrete(3), place=Box(-1, 1, (2,)))
    action_space = Dict(gripper=Discrete(3), arm=Box(-1, 1, (2,)))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.look(), {}

    def look(self):
        place = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        self.seen = {"part": int(self.np_random.integers(3)), "place": place}
        return self.seen

    def step(self, action):
        right = float(action["gripper"] == self.seen["part"])
        distance = float(np.abs(action["arm"] - self.seen["place"]).mean())
        self.time += 1
        return self.look(), right - distance, False, self.time == 10, {}


if __name__ == "__main__":
    agent = hw.Agent("ppo", Robot, seeds=3)
    agent.learn(50_000)
    print(agent.evaluate(episodes=20))  # 10 is the most there is; random actions get -3.3
    obs, _ = Robot().reset(seed=0)
    print(obs, "->", agent.predict(obs, deterministic=True))
