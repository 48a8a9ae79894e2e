"""Joint DQN against the exact values of a task that is small enough to be solved by hand.

In ContextualDecoupler what comes next does not depend on what is done, and the best reward of every
step is 1. So V* = 1 / (1 - gamma), and Q*(s, a) = r(s, a) + gamma V*.
"""

import itertools

import torch

from headwise.algorithms.dqn import DQN
from headwise.envs.make import make_vec
from headwise.ops import Buffer
from headwise.training.build import make_loop
from headwise.training.config import RunConfig

GAMMA = 0.6
OPTIONS = 3
SEEDS = (0, 1)


def value_of(learner, obs, action):
    """Q of one action in one state, (P,)."""
    states, actions = Buffer(len(SEEDS), 1, obs.shape[-1]), Buffer(len(SEEDS))
    states.tensor[:, 0], actions.tensor[:, 0] = obs, learner.layout.to_learner(action)
    return learner.q_net.predict(states, actions, None).tensor.flatten().clone()


def test_joint_dqn_finds_the_exact_values():
    env = make_vec("ContextualDecoupler", SEEDS, 16, num_options=OPTIONS, one_hot=True)
    config = DQN(
        net_arch=(64, 64), gamma=GAMMA, learning_rate=2e-3, tau=0.05, batch_size=128,
        buffer_size=4000, learning_starts=500, exploration_initial_eps=1.0,
        exploration_final_eps=1.0,
    )  # fmt: skip
    steps = 10_000
    plan = RunConfig.of(config, factorization="joint", total_timesteps=steps)
    loop = make_loop(env, plan, SEEDS)
    loop.run(steps)

    found, exact, best = [], [], []
    for context, first, second in itertools.product(range(2), range(OPTIONS), range(OPTIONS)):
        targets = (first, second)
        obs = torch.zeros(len(SEEDS), 1, 2 + 2 * OPTIONS)
        obs[..., [context, 2 + first, 2 + OPTIONS + second]] = 1.0
        with torch.no_grad():
            best.append(loop.algorithm.policy(obs)[:, 0].tolist())
        assert all(
            action[context] == targets[context] and action[1 - context] == 0 for action in best[-1]
        )
        for action in itertools.product(range(OPTIONS), repeat=2):
            reward = 1.0 if action[context] == targets[context] else -1.0
            reward -= 0.1 * (action[1 - context] != 0)
            exact.append(reward + GAMMA / (1.0 - GAMMA))
            chosen = torch.tensor(action, dtype=torch.float32).expand(len(SEEDS), 1, 2)
            found.append(value_of(loop.algorithm, obs, chosen))
    errors = (torch.stack(found) - torch.tensor(exact).unsqueeze(-1)).abs()
    assert errors.max() < 0.15
    assert errors.mean() < 0.04
