"""A member that acts alone does what it does among all, for every algorithm and factorization."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cells import STEPS, cells, loop_for, parameters

from headwise.training.evaluate import Player

SEEDS = (0, 7, 3)


def masks(loop, rows: int) -> np.ndarray:
    """Some options of every discrete head are forbidden, others for every row."""
    spec, generator = loop.env.spec, np.random.default_rng(1)
    legal = generator.random((rows, spec.num_heads, max(spec.max_options, 1))) < 0.6
    legal[..., 0] = True
    return legal | ~spec.is_choice[:, None]


def check(loop) -> None:
    """All ways to act: greedy and drawn, few and many rows, without and with masks."""
    player, generator = Player(loop), np.random.default_rng(0)
    kinds = [None, masks(loop, 9)] if loop.binning.spec.num_choices else [None]
    for legal in kinds:
        for rows in (1, 4, 9):  # there are four environment copies
            obs = generator.normal(size=(rows, loop.env.obs_spec.size)).astype(np.float32)
            allowed = None if legal is None else legal[:rows]
            for draw in (None, 5):
                everyone = np.broadcast_to(obs, (len(SEEDS), *obs.shape))
                among = None if allowed is None else np.stack([allowed] * len(SEEDS))
                expected = Player(loop).act(everyone, among, draw)
                for member in (2, 0, 1):
                    alone = player.act_alone(obs, member, allowed, draw)
                    np.testing.assert_array_equal(alone, expected[member])


@pytest.mark.parametrize(("algorithm", "factorization", "view"), cells())
def test_a_member_acts_alone_as_among_all(algorithm, factorization, view):
    loop = loop_for(algorithm, factorization, view, SEEDS)
    check(loop)
    loop.run(STEPS)
    assert loop.updates >= 5
    check(loop)  # what was kept to act with knows what was learned since


def test_acting_alone_leaves_learning_as_it_is():
    learned = []
    for acts in (False, True):
        loop = loop_for("ppo", "vdn", "hybrid", SEEDS)
        player = Player(loop)
        obs = np.ones((2, loop.env.obs_spec.size), dtype=np.float32)
        for _ in range(40):
            loop.tick()
            if acts:
                player.act_alone(obs, 1)
                player.act_alone(obs, 0, draw=2)
        learned.append(parameters(loop))
    assert torch.equal(*learned)


def test_observations_are_normalized_by_the_own_past_of_whoever_acts():
    from headwise.algorithms import algorithms
    from headwise.envs.native.vec_env import NativeVecEnv
    from headwise.factorizations import factorizations
    from headwise.training.build import make_loop
    from headwise.training.config import RunConfig

    env = NativeVecEnv("HybridShoot", SEEDS, 4, view="hybrid")
    plan = RunConfig.of(
        algorithms.get("ppo").small(), factorization=factorizations.get("shared").small(),
        total_timesteps=STEPS, normalize_obs=True,
    )  # fmt: skip
    loop = make_loop(env, plan, SEEDS)
    loop.run(STEPS)
    means = loop.normalizer.obs_mean
    assert not torch.equal(means[0], means[1])
    check(loop)
