"""What Stable-Baselines3 has learned after so many steps: mean returns of 100 greedy episodes.

Arguments: ppo, sac or dqn; steps; seed. PPO and SAC play LunarLanderContinuous-v3, DQN chooses
one of the 300 joint actions of HybridShoot. Prints one number.
"""

import sys
import warnings

import gymnasium as gym
import numpy as np
import torch
from settings import SETTINGS
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

warnings.filterwarnings("ignore")
NUM_ENVS = 16
torch.set_num_threads(1)


class JointShoot(gym.Env):
    """HybridShoot by its authors, one of 300 joint actions, both ends of the square among them."""

    def __init__(self):
        from hybrid_shoot import HybridShootEnv

        # The package hits within 0.05 unless told otherwise; the paper and we say 0.1.
        self.env = HybridShootEnv(independent_mode=False, hit_radius=0.1)
        self.observation_space = gym.spaces.Box(0.0, 1.0, (9,))
        self.action_space = gym.spaces.Discrete(300)

    def reset(self, *, seed=None, options=None):
        obs, info = self.env.reset(seed=seed)
        return obs.astype(np.float32), info

    def step(self, action):
        aim = np.array([action // 10 % 10, action % 10]) / 9
        obs, *rest = self.env.step((int(action) // 100, aim))
        return obs.astype(np.float32), *rest


algorithm, steps, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
make = JointShoot if algorithm == "dqn" else (lambda: gym.make("LunarLander-v3", continuous=True))
env = make_vec_env(make, n_envs=NUM_ENVS, seed=seed)
common = SETTINGS[algorithm]
settings = {
    "policy_kwargs": {"net_arch": list(common["net_arch"])},
    "learning_rate": common["learning_rate"],
    "gamma": common["gamma"],
}
if algorithm == "ppo":
    settings |= {
        "n_steps": common["n_steps"],
        "batch_size": common["batch_size"],
        "n_epochs": common["n_epochs"],
        "gae_lambda": common["gae_lambda"],
        "ent_coef": common["ent_coef"],
    }
else:
    settings |= {
        "buffer_size": common["buffer_size"],
        "batch_size": common["batch_size"],
        "learning_starts": common["learning_starts"],
        "train_freq": 1,
        "gradient_steps": NUM_ENVS // 4,
        "tau": common["tau"],
    }
if algorithm == "dqn":
    settings |= {
        "target_update_interval": 1,
        "exploration_final_eps": common["exploration_final_eps"],
    }
model = {"ppo": PPO, "sac": SAC, "dqn": DQN}[algorithm](
    "MlpPolicy", env, device="cpu", seed=seed, **settings
)
model.learn(steps)
mean, _ = evaluate_policy(model, make_vec_env(make, n_envs=4, seed=10_000 + seed), 100)
print(mean)
