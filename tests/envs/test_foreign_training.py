"""Learners in users' environments: what is illegal is never chosen, and what is stored is true."""

import functools

import numpy as np
import pytest
import torch
from foreign_toys import Counter, Masked, Nested, Relay, true_mask

from headwise.envs.foreign import foreign_env
from headwise.factorizations import factorizations
from headwise.training.build import make_loop
from headwise.training.config import RunConfig

SETTINGS = {
    "ppo": {"n_steps": 8, "batch_size": 16, "n_epochs": 2},
    "dqn": {"learning_starts": 16, "batch_size": 16, "bins": 3, "exploration_final_eps": 0.5},
    "sac": {"learning_starts": 16, "batch_size": 16},
}


def loop_for(env, algorithm, factorization="shared", **settings):
    settings = {"net_arch": (16,), "learning_rate": 0.01, **SETTINGS[algorithm], **settings}
    config = RunConfig.of(algorithm, factorization=factorization, total_timesteps=200, **settings)
    return make_loop(env, config, range(env.num_members))


# A joint action lists options; beside numbers it is refused unless they are cut into bins (dqn).
@pytest.mark.parametrize(
    ("algorithm", "factorization", "space"),
    [
        (algorithm, factorization, space)
        for algorithm in SETTINGS
        for factorization in factorizations.names()
        for space in ("tuple", "hybrid")
        if factorization != "joint" or space == "tuple" or algorithm == "dqn"
    ],
)
def test_nothing_illegal_is_ever_chosen(algorithm, factorization, space):
    """The environment raises at an illegal option: exploring, learning, and at its best."""
    make = functools.partial(Masked, "flat", "info", space, length=2, spread=3)
    env = foreign_env(make, [1, 2], 2)
    loop = loop_for(env, algorithm, factorization, normalize_obs=True)
    loop.run(72)
    assert loop.updates >= 2
    assert loop.algorithm.alive.all()
    # Greedy actions for observations of every time, with the masks of those times.
    times = torch.arange(6.0)
    obs = torch.stack([torch.zeros(6), torch.zeros(6), times], -1).expand(2, 6, 3)
    masks = [env.codec.legal(np.concatenate(true_mask(int(t)))) for t in times]
    legal = torch.as_tensor(np.stack(masks)).expand(2, 6, -1, -1)
    action = loop.algorithm.policy(obs, legal=loop.binning.legal(legal))
    for (member, row), _ in np.ndenumerate(np.zeros((2, 6))):
        a, b = action[member, row, -2:].int().tolist()
        first, second = true_mask(row)
        assert first[a]
        assert second[b]


class LateMasks(Masked):
    """Tells its masks from the third episode on, but not in the fifth; till then all is allowed."""

    def _info(self):
        return super()._info() if self._tells() else {}

    def step(self, action):
        return super().step(action) if self._tells() else Counter.step(self, action[0])

    def _tells(self):
        return self.episode >= 2 and self.episode != 4


@pytest.mark.parametrize("algorithm", SETTINGS)
def test_masks_that_come_late_and_vanish_are_heeded(algorithm):
    """The environment raises at an illegal option in the very step after the first mask."""
    make = functools.partial(LateMasks, "flat", "info", "tuple", length=2)
    loop = loop_for(foreign_env(make, [1, 2], 2), algorithm)
    allowed = []  # options of a slot, of 3 + 2: by its mask 4 at first, and 2 in the second step

    def watch(loop):
        known = loop.legal is not None
        allowed.append(set(loop.legal.sum((-1, -2)).ravel().tolist()) if known else None)
        return False

    loop.run(80, watch)
    assert allowed[:11] == [None] * 3 + [{4}, {2}, {4}, {2}, {5}, {5}, {4}, {2}]
    assert loop.updates >= 2


@pytest.mark.parametrize("algorithm", SETTINGS)
@pytest.mark.parametrize("make", [Nested, Relay])
def test_nested_spaces_and_teams_train(make, algorithm):
    loop = loop_for(
        foreign_env(make, [1, 2], 2), algorithm, normalize_obs=True, normalize_reward=True
    )
    loop.run(72)
    assert loop.updates >= 2
    assert loop.algorithm.alive.all()
    assert len(loop.episodes.table) > 10
