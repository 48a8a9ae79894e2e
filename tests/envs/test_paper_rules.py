"""Rules that the paper has and the authors' packages have not, as settings of the environments."""

import numpy as np
import pytest

from headwise.envs.native.gym_env import NativeEnv
from headwise.envs.native.vec_env import NativeVecEnv

CORNERS = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]], dtype=np.float32)


def rewards(*shots, **settings):
    """Of shots (target, x, y) at targets in three corners."""
    env = NativeEnv("HybridShoot", view="hybrid", mode="dependent", **settings)
    env.reset(seed=0)
    env.set_state({**env.get_state(), "targets": CORNERS})
    return [env.step((t, np.array([x, y], dtype=np.float32)))[1] for t, x, y in shots]


HIT, MISS, ON_THE_DEAD = (0, 0.0, 0.0), (1, 0.5, 0.5), (0, 0.5, 0.5)


def test_every_round_costs_for_each_target_that_is_neither_selected_nor_shot():
    """-0.1 a step. The hit of the first round: two others cost. Then one other, or both."""
    found = rewards(HIT, MISS, ON_THE_DEAD, exposed="always")
    assert found == pytest.approx([10.0 - 0.1 - 1.0, -0.2 - 0.1 - 0.5, -0.5 - 0.1 - 1.0])
    paper = {"exposed": "always", "miss_reward": 0.0, "dead_reward": 0.0, "step_reward": 0.0}
    assert rewards(HIT, MISS, ON_THE_DEAD, **paper) == pytest.approx([9.0, -0.5, -1.0])
    dear = rewards(MISS, exposed="always", exposed_reward=-3.0)
    assert dear == pytest.approx([-0.2 - 0.1 - 6.0])


def test_unless_it_is_asked_for_they_cost_in_independent_mode_alone():
    for settings in ({}, {"exposed": "as_mode"}, {"exposed_reward": -3.0}):
        found = rewards(HIT, MISS, ON_THE_DEAD, **settings)
        assert found == pytest.approx([9.9, -0.3, -0.6])


STILL = np.zeros(4, dtype=np.int64)
"""A run of strength zero; without enemies that move it may go on for ever."""


def stay(env, **state):
    env.reset(seed=0)
    env.set_state({**env.get_state(), "enemy_dx": np.zeros(2), **state})


def test_platform_shows_how_many_steps_there_were():
    env = NativeEnv("Platform", observe_time=True, noise=0.0, view="discrete")
    plain = NativeEnv("Platform", noise=0.0, view="discrete")
    assert env.observation_space.shape == (10,)
    assert plain.observation_space.shape == (9,)
    assert env.reset(seed=0)[0][9] == 0.0
    stay(env)
    stay(plain)
    for step in range(1, 201):
        seen, _, _, truncated, _ = env.step(STILL)
        assert seen[9] == np.float32(step / 200)
        assert np.array_equal(seen[:9], plain.step(STILL)[0])
        assert env.observation_space.contains(seen)
        assert truncated == (step == 200)
    assert env.reset()[0][9] == 0.0


def test_time_goes_on_from_a_state_and_stops_at_the_papers_limit():
    env = NativeEnv("Platform", observe_time=True, view="discrete", max_episode_steps=1000)
    for elapsed, shown in ((7, 8 / 200), (198, 199 / 200), (199, 1.0), (500, 1.0)):
        stay(env, elapsed=elapsed)
        assert env.step(STILL)[0][9] == np.float32(shown)


def test_after_an_automatic_reset_time_begins_anew():
    env = NativeVecEnv(
        "Platform", (0, 1), 3, view="discrete", observe_time=True, max_episode_steps=3
    )
    assert (env.reset()[..., 9] == 0.0).all()
    for step in (1, 2, 3, 1, 2, 3):
        batch = env.step(np.zeros((2, 3, 4), dtype=np.float32))
        assert (batch.next_obs[..., 9] == np.float32(step / 200)).all()
        assert (batch.obs[..., 9] == np.float32(step % 3 / 200)).all()
        assert (batch.truncated == (step == 3)).all()
