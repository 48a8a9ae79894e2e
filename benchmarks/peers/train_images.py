"""How many environment steps Stable-Baselines3 trains on in a second, from pictures.

Argument: ppo or dqn.
"""

import sys
import warnings

import pixels
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from worker import serve

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
algorithm = sys.argv[1]
env = make_vec_env(pixels.Pixels, n_envs=pixels.ENVS, seed=0)
if algorithm == "ppo":
    chunk = pixels.PPO_ROLLOUT
    model = PPO(
        "CnnPolicy", env, n_steps=chunk // pixels.ENVS, batch_size=pixels.PPO_BATCH,
        n_epochs=pixels.PPO_EPOCHS, policy_kwargs={"net_arch": [pixels.HIDDEN]}, device="cpu",
    )  # fmt: skip
else:
    chunk = 256
    model = DQN(
        "CnnPolicy", env, batch_size=pixels.DQN_BATCH, buffer_size=pixels.DQN_REPLAY,
        learning_starts=pixels.DQN_WARMUP, train_freq=1,
        gradient_steps=int(pixels.ENVS * pixels.DQN_UPDATES), target_update_interval=1, tau=0.01,
        policy_kwargs={"net_arch": [pixels.HIDDEN]}, device="cpu",
    )  # fmt: skip
model.learn(2 * chunk)
serve(lambda: model.learn(chunk, reset_num_timesteps=False), chunk)
