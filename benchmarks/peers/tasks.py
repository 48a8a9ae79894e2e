"""The tasks that peers train on: many slots, options of several heads, true successors."""

import numpy as np


class Decoupler:
    """ContextualDecoupler in a few lines of numpy, so that a peer waits for nothing but itself."""

    heads = (5, 5)
    obs_size = 3

    def __init__(self, num_envs):
        self.rng = np.random.default_rng(0)
        self.num_envs = num_envs
        self.elapsed = 0

    def reset(self):
        self.obs = self._draw()
        return self.obs

    def step(self, action):
        rows = np.arange(self.num_envs)
        active = self.obs[:, 0].astype(int)
        hit = action[rows, active] == self.obs[rows, 1 + active]
        reward = np.where(hit, 1.0, -1.0) - 0.1 * (action[rows, 1 - active] != 0)
        successor = self._draw()
        self.elapsed += 1
        truncated = np.full(self.num_envs, self.elapsed % 100 == 0)
        self.obs = np.where(truncated[:, None], self._draw(), successor)
        terminated = np.zeros(self.num_envs, dtype=bool)
        return self.obs, successor, reward.astype(np.float32), terminated, truncated

    def _draw(self):
        targets = self.rng.integers(0, 5, (self.num_envs, 2))
        context = self.rng.integers(0, 2, (self.num_envs, 1))
        return np.concatenate([context, targets], axis=1).astype(np.float32)


class Shoot:
    """hybrid-shoot 0.3.0, dependent mode, its aim in ten bins along each axis."""

    heads = (3, 10, 10)
    obs_size = 9

    def __init__(self, num_envs):
        from hybrid_shoot import HybridShootVecEnv

        self.env = HybridShootVecEnv(num_envs=num_envs, independent_mode=False, num_threads=1)

    def reset(self):
        return self.env.reset()[0].astype(np.float32)

    def step(self, action):
        return self.step_at(action[:, 0].astype(np.int32), (action[:, 1:] + 0.5) * 0.1)

    def step_at(self, target, aim):
        obs, reward, terminated, truncated, info = self.env.step((target, aim))
        successor = obs.copy()
        for i in np.flatnonzero(info.get("_final_observation", np.zeros(0))):
            successor[i] = info["final_observation"][i]
        obs, successor, reward = (x.astype(np.float32) for x in (obs, successor, reward))
        return obs, successor, reward, terminated, truncated
