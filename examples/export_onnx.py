"""Ship a policy: train a gripper on an arm, export the best seed, run it without Headwise."""

from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium as gym
import numpy as np
import onnxruntime
from gymnasium import spaces

import headwise as hw


class Reach(gym.Env):
    """Point the arm at the target, and close the gripper when it is near."""

    observation_space = spaces.Dict(target=spaces.Box(-1, 1, (2,)), near=spaces.Discrete(2))
    action_space = spaces.Dict(arm=spaces.Box(-1, 1, (2,)), gripper=spaces.Discrete(2))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.target = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        self.near = int(np.abs(self.target).max() < 0.5)
        return {"target": self.target, "near": self.near}, {}

    def step(self, action):
        right = float(action["gripper"] == self.near)
        reward = right - float(np.abs(action["arm"] - self.target).sum())
        return {"target": self.target, "near": self.near}, reward, True, False, {}


if __name__ == "__main__":
    agent = hw.Agent("ppo", Reach, seeds=2, n_steps=16, net_arch=(32, 32), normalize_obs=True)
    agent.learn(8_000, progress=False)
    with TemporaryDirectory() as folder:
        agent.best().export(Path(folder) / "reach.onnx")
        policy = onnxruntime.InferenceSession(Path(folder) / "reach.onnx")
    target, near = np.float32([[0.8, -0.3], [0.1, 0.2]]), np.array([0, 1])
    arm, gripper = policy.run(None, {"observation/target": target, "observation/near": near})
    print("arm:", arm.astype(float).round(2).tolist(), "gripper:", gripper.tolist())
