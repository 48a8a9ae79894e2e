"""Environments that are handed over made: when they are used themselves, and when made anew."""

import os
import signal

import gymnasium as gym
import numpy as np
import pytest
from foreign_toys import Counter
from gymnasium.vector import SyncVectorEnv

from headwise.envs.foreign import foreign_env, is_itself


class Shifted(gym.ObservationWrapper):
    """A wrapper that does not write down how it was made."""

    def observation(self, obs):
        return obs + 7.0


def inside(env):
    """The environment that the first slot steps."""
    return env.adapters[0].vector.envs[0]


def cart(threshold=None):
    made = gym.make("CartPole-v1")
    if threshold is not None:
        made.unwrapped.x_threshold = threshold
    return made


@pytest.mark.parametrize("make", [cart, lambda: Shifted(cart()), Counter])
def test_for_one_slot_of_one_member_it_is_the_object_itself(make):
    given = make()
    assert inside(foreign_env(given, [1], 1)) is given


def test_what_can_be_made_anew_is_for_several_slots():
    given = cart()
    env = foreign_env(given, [1], None)
    assert env.num_slots == 16
    assert inside(env) is not given
    clipped = gym.wrappers.ClipReward(cart(), 0, 0.5)  # a wrapper that says how it was made
    env = foreign_env(clipped, [1], 2)
    env.reset()
    np.testing.assert_array_equal(env.step(np.zeros((1, 2, 1), np.float32)).reward, [[0.5, 0.5]])


@pytest.mark.parametrize("make", [lambda: Shifted(cart()), Counter])
def test_what_cannot_has_one_slot_if_nobody_asks_for_more(make):
    given = make()
    env = foreign_env(given, [1], None)
    assert env.num_slots == 1
    assert inside(env) is given


def test_who_knows():
    vector = SyncVectorEnv([Counter] * 2)
    assert is_itself(vector, 2, 1)
    assert is_itself(Counter(), 1, 1)
    assert is_itself(Counter(), 1, None)
    assert is_itself(cart(), 1, 1)
    for env in (cart(), Counter, "CartPole-v1", cart):
        assert not is_itself(env, 1, None)
    assert not is_itself(cart(), 2, 1)


def test_a_change_that_the_spec_does_not_know_of_is_told_once(caplog):
    given = cart(threshold=0.01)
    for _ in range(2):
        foreign_env(given, [1], 2)
    assert caplog.text.count("x_threshold=2.4 and not 0.01") == 1
    assert "num_envs=1" in caplog.text
    caplog.clear()
    foreign_env(given, [1], 1)
    foreign_env(cart(), [1], 2)
    assert caplog.text == ""


def test_control_c_is_for_the_process_that_trains():
    """A terminal sends it to every process; a worker that heeds it ends in the middle of a step."""
    before = signal.getsignal(signal.SIGINT)
    env = foreign_env(Counter, [1], 2, vectorization="async")
    env.reset()
    for process in env.adapters[0].vector.processes:
        os.kill(process.pid, signal.SIGINT)
    assert env.step(np.zeros((1, 2, 1), dtype=np.float32)).valid.all()
    assert signal.getsignal(signal.SIGINT) is before
    env.close()


def test_seeds_can_be_given_anew():
    def first(env, seeds=None):
        if seeds is not None:
            env.reseed(seeds)
        return env.reset()[..., 0].copy()  # the word that a seed draws

    env = foreign_env(Counter, [1, 2], 2)
    one = first(env)
    assert not np.array_equal(first(env, [3, 4]), one)
    np.testing.assert_array_equal(first(env, [1, 2]), one)
    np.testing.assert_array_equal(first(foreign_env(Counter, [3, 4], 2)), first(env, [3, 4]))
