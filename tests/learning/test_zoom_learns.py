"""A number to be hit to within 1 % of its range: what levels can learn and five bins cannot say."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import headwise as hw

TARGETS = {0.0: 0.37, 1.0: -0.79}
RANGE = 2.0


class Target(gym.Env):
    """What is seen says where to aim; the root of the miss is what it costs: small ones count."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen = float(self.np_random.integers(2))
        return np.array([self.seen], dtype=np.float32), {}

    def step(self, action):
        miss = abs(float(action[0]) - TARGETS[self.seen]) / RANGE
        return np.zeros(1, dtype=np.float32), -10.0 * float(np.sqrt(miss)), True, False, {}


SETTINGS = {
    "dqn": {
        "buffer_size": 4000, "batch_size": 64, "learning_starts": 256, "learning_rate": 5e-3,
        "tau": 0.05, "exploration_fraction": 0.6,
    },
    "ppo": {"n_steps": 32, "batch_size": 128, "learning_rate": 3e-3, "ent_coef": 0.003},
}  # fmt: skip
STEPS = {"dqn": 12_000, "ppo": 16_000}


def misses(algo, kind, **seen):
    """How far the greedy actions of each seed are from where they should be, of the range."""
    agent = hw.Agent(
        algo, Target, factorization=kind, seeds=3, num_envs=8, net_arch=(32, 32),
        env_settings=seen, **SETTINGS[algo],
    )  # fmt: skip
    agent.learn(STEPS[algo], progress=False)
    obs = np.array([[x] for x in TARGETS], dtype=np.float32)
    aims = [agent.predict(obs, deterministic=True, member=m)[:, 0] for m in range(3)]
    return np.abs(np.array(aims) - list(TARGETS.values())).max(-1) / RANGE


@pytest.mark.parametrize(("algo", "kind"), [("dqn", "ar"), ("ppo", "ar")])
def test_levels_hit_within_one_percent(algo, kind):
    assert (misses(algo, kind, view="zoom") < 0.01).all()


def test_five_bins_do_not():
    nearest = [np.abs(np.linspace(-1, 1, 5) - x).min() / RANGE for x in TARGETS.values()]
    assert min(nearest) > 0.05
    assert (misses("ppo", "ar", view="discrete", bins=5) > 0.05).all()
