"""What one step of a user's environments gives: leaves, final rows, weighed rewards."""

import functools

import numpy as np
import pytest
from foreign_toys import Counter, Nested
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from headwise import ConfigError, EnvError
from headwise.envs.foreign import foreign_env

ZEROS = np.zeros((1, 2, 1), dtype=np.float32)


def steps_of(env, number):
    """Steps of its first vector environment, with the batch of each."""
    adapter = env.adapters[0]
    zeros = np.zeros((adapter.num_envs, env.spec.num_heads), dtype=np.float32)
    return [adapter.step(env.codec.to_env_batch(zeros)) for _ in range(number)]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_observations_are_leaves_in_the_types_of_their_spaces(vectorization):
    env = foreign_env(Nested, [1], 2, vectorization=vectorization)
    env.reset()
    (step,) = steps_of(env, 1)
    kinds = {path: (x.dtype, x.shape) for path, x in step.obs.items()}
    assert kinds == {
        "flags": (np.int8, (2, 2)),
        "gear": (np.int64, (2,)),
        "place[0]": (np.float32, (2, 2, 2)),
        "place[1]": (np.int64, (2, 2)),
    }
    env.close()


def test_observations_are_the_buffers_of_the_environment():
    env = foreign_env(Counter, [1], 2)
    env.reset()
    first, second = steps_of(env, 2)
    assert first.obs["observation"] is second.obs["observation"]
    assert first.obs["observation"] is env.adapters[0].vector._observations


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_final_rows_are_there_only_where_an_episode_ended(mode):
    makes = [functools.partial(Counter, length) for length in (2, 3)]
    env = foreign_env(SyncVectorEnv(makes, autoreset_mode=mode), [1])
    env.reset()
    adapter, told = env.adapters[0], []
    for _ in range(3):
        step = adapter.step(np.zeros(2, dtype=int))
        final = step.final
        rows = None if final is None else (final.slots.tolist(), final.obs["observation"][:, 1:])
        told.append((step.obs["observation"][:, 1:].tolist(), rows))
    (a, none), (b, first), (c, second) = told
    assert a == [[0, 1], [0, 1]]
    assert none is None
    assert b == [[1, 0], [0, 2]]
    assert (first[0], first[1].tolist()) == ([0], [[0, 2]])
    assert c == [[1, 1], [1, 0]]
    assert (second[0], second[1].tolist()) == ([1], [[0, 3]])


def test_every_reset_is_without_options():
    """Some environments know nothing of options, and all are promised None."""
    seen = []

    class Asking(Counter):
        def reset(self, *, seed=None, options=None):
            seen.append(options)
            return super().reset(seed=seed, options=options)

    env = foreign_env(functools.partial(Asking, length=1), [1], 2)
    env.reset()
    for _ in range(3):
        env.step(ZEROS)
    assert seen == [None] * 8


# --- rewards of several parts ---------------------------------------------------------------------


class TwoParts(Counter):
    def step(self, action):
        obs, reward, *rest = super().step(action)
        return obs, np.array([reward, -1.0], dtype=np.float32), *rest


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_rewards_of_parts_are_weighed(vectorization):
    plain = foreign_env(Counter, [1], 2)
    weighed = foreign_env(TwoParts, [1], 2, reward_weights=(0.5, 3), vectorization=vectorization)
    plain.reset()
    weighed.reset()
    for _ in range(5):
        np.testing.assert_allclose(
            weighed.step(ZEROS).reward, 0.5 * plain.step(ZEROS).reward - 3, rtol=1e-6
        )
    weighed.close()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_without_weights_one_message_says_so(vectorization):
    env = foreign_env(TwoParts, [1], 2, vectorization=vectorization)
    env.reset()
    with pytest.raises(EnvError, match=r"TwoParts.*2 parts.*\(2,\).*reward_weights=\(1.0, 1.0\)"):
        env.step(ZEROS)
    env.close()


@pytest.mark.parametrize(
    ("make", "weights", "message"),
    [
        (Counter, (1.0, 1.0), r"reward_weights do not fit the reward; got .*\(\); allowed: \(2,\)"),
        (TwoParts, (1.0,), r"do not fit the reward; got a reward of shape \(2,\); allowed: \(1,\)"),
    ],
)
def test_weights_that_do_not_fit(make, weights, message):
    env = foreign_env(make, [1], 2, reward_weights=weights)
    env.reset()
    with pytest.raises(EnvError, match=message):
        env.step(ZEROS)


@pytest.mark.parametrize("weights", ["one", (), (1.0, None), (1.0, np.nan), 2.0, [[1.0]]])
def test_weights_that_are_none(weights):
    with pytest.raises(ConfigError, match="reward_weights say how much each part"):
        foreign_env(TwoParts, [1], 2, reward_weights=weights)


def test_weights_for_a_vector_environment():
    class Parts(SyncVectorEnv):
        def step(self, actions):
            obs, reward, *rest = super().step(actions)
            return obs, np.stack([reward, reward], axis=-1), *rest

    env = foreign_env(Parts([Counter] * 2), [1], reward_weights=[1, -1])
    env.reset()
    for _ in range(3):
        assert (env.step(ZEROS).reward == 0).all()


def test_spaces_that_differ_between_slots():
    sizes = iter((3, 3, 4))

    def make():
        made = Counter()
        made.observation_space = Box(0, 1e6, (next(sizes),), np.float64)
        return made

    with pytest.raises(EnvError, match="different spaces"):
        foreign_env(make, [1], 3)
