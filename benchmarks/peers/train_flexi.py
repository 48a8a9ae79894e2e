"""flexibuddiesrl 1.0.4, the learners of the paper's authors, training with one torch thread.

Arguments: ppo, dqn or sac; its variant (none, VDN, QMIX; for sac V, which is Concat, or Q, which is
BDQ); and "decoupler" with the study's settings or "shoot" with the paper's. A step of `serve` is a
rollout and its updates, or 64 vector steps and theirs.
"""

import sys

import numpy as np
import torch
from flexibuddiesrl.buffers import ReplayBuffer, RolloutBuffer
from flexibuddiesrl.DQN_new_buffer import DQN
from flexibuddiesrl.PG_new_buffer import PG
from flexibuddiesrl.SAC_new_buffer import SAC
from tasks import Decoupler, Shoot
from worker import serve

NUM_ENVS, VECTOR_STEPS, LEARNING_STARTS = 16, 64, 10_000
algorithm, variant, task = sys.argv[1:4]
torch.set_num_threads(1)
torch.manual_seed(0)
np.random.seed(0)  # noqa: NPY002  (the one that the package draws from)
env = {"decoupler": Decoupler, "shoot": Shoot}[task](NUM_ENVS)
mix = None if variant == "none" else variant
state = {"obs": torch.as_tensor(env.reset()).unsqueeze(1)}


def rollouts():
    """PPO: a rollout and its updates."""
    length = {"decoupler": 2048, "shoot": 4096}[task]
    small = {"hidden_dims": [64, 64], "learning_rate": 1e-3, "use_kl_penalty": mix is not None}
    large = {"hidden_dims": [256, 256], "learning_rate": 5e-4}
    agent = PG(
        obs_dim=env.obs_size,
        discrete_action_dims=env.heads,
        n_epochs=4,
        mini_batch_size=128,
        mix_type=mix,
        device="cpu",
        **(small if task == "decoupler" else large),
    )
    buffer = RolloutBuffer(
        buffer_size=length // NUM_ENVS,
        obs_shape=(env.obs_size,),
        action_dim=len(env.heads),
        device="cpu",
        n_envs=NUM_ENVS,
        n_agents=1,
        log_probs_dim=len(env.heads),
        full_gpu=True,
    )

    def step():
        agent.eval()
        for _ in range(length // NUM_ENVS):
            with torch.no_grad():
                chosen = agent.train_actions(state["obs"])
            action = chosen["discrete_actions"]
            obs, _, reward, terminated, truncated = env.step(action.numpy().reshape(NUM_ENVS, -1))
            buffer.add(
                obs=state["obs"],
                action=action,
                reward=reward[None],
                termination=terminated[None],
                truncation=truncated[None],
                value=chosen["values"],
                log_prob=chosen["discrete_log_probs"],
            )
            state["obs"] = torch.as_tensor(obs).unsqueeze(1)
        agent.train()
        with torch.no_grad():
            last = agent.expected_V(state["obs"])
        agent.reinforcement_learn(buffer, last, terminated[None], truncated[None])
        buffer.reset()

    return step, length


def updates():
    """DQN and SAC: vector steps, and an update for every fourth environment step."""
    kind = {"dqn": DQN, "sac": SAC}[algorithm]
    settings = {"mix_type": mix, "continuous_action_dims": 0} if algorithm == "dqn" else {}
    if algorithm == "sac":
        settings = {"mode": variant, "continuous_action_dim": 0}
    agent = kind(
        obs_dim=env.obs_size,
        discrete_action_dims=env.heads,
        hidden_dims=[256, 256],
        learning_rate=5e-4,
        device="cpu",
        **settings,
    )
    buffer = ReplayBuffer(
        buffer_size=100_000,
        obs_shape=(env.obs_size,),
        action_dim=len(env.heads),
        device="cpu",
        n_envs=NUM_ENVS,
        n_agents=1,
        full_gpu=True,
    )

    def collect():
        agent.eval()
        with torch.no_grad():
            action = agent.train_actions(state["obs"])["discrete_actions"]
        obs, successor, reward, terminated, truncated = env.step(
            action.numpy().reshape(NUM_ENVS, -1)
        )
        buffer.add(
            obs=state["obs"],
            next_obs=torch.as_tensor(successor).unsqueeze(1),
            action=action,
            reward=reward[None],
            term=terminated[None],
            trunc=truncated[None],
        )
        state["obs"] = torch.as_tensor(obs).unsqueeze(1)

    def step():
        for _ in range(VECTOR_STEPS):
            collect()
            agent.train()
            for _ in range(NUM_ENVS // 4):
                agent.reinforcement_learn(buffer.sample(256))

    for _ in range(LEARNING_STARTS // NUM_ENVS):
        collect()
    return step, VECTOR_STEPS * NUM_ENVS


serve(*(rollouts() if algorithm == "ppo" else updates()))
