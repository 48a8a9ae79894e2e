"""Any environment: every transition that reaches a learner took place, whoever resets and when."""

import functools

import gymnasium as gym
import numpy as np
import pytest
import torch
from foreign_toys import Counter, Nested, Resumable
from gymnasium.spaces import Box, Dict, Discrete, OneOf, Tuple
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from headwise import EnvError
from headwise.algorithms.base import Acted
from headwise.envs.foreign import foreign_env
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.envs.seeds import slot_seeds
from headwise.training.replay import Replay
from headwise.training.transition import Transition

SPREAD = functools.partial(Counter, length=2, spread=3)


def vector(kind, mode, number, make=SPREAD):
    return kind([make] * number, autoreset_mode=mode)


def own(vectorization):
    return lambda: foreign_env(SPREAD, [7, 8], 2, vectorization=vectorization)


def one_for_all(kind, mode):
    return lambda: foreign_env(vector(kind, mode, 4), [7, 8])


def one_for_each(kind, mode):
    return lambda: foreign_env(lambda: vector(kind, mode, 2), [7, 8], 2)


WAYS = {
    "own-sync": own("sync"),
    "own-async": own("async"),
    **{
        f"{way.__name__}-{kind.__name__}-{mode.name}": way(kind, mode)
        for way in (one_for_all, one_for_each)
        for kind in (SyncVectorEnv, AsyncVectorEnv)
        for mode in AutoresetMode
    },
}
every_way = pytest.mark.parametrize("way", WAYS)


def actions_of(env, steps, seed=0):
    rng = np.random.default_rng(seed)
    shape = (steps, env.num_members, env.num_slots, env.spec.num_heads)
    options = rng.integers(0, np.maximum(env.spec.high + 1, 1).astype(int), shape)
    return np.where(env.spec.is_choice, options, rng.uniform(-1, 1, shape)).astype(np.float32)


def check_transition(obs, action, reward, next_obs, terminated, truncated):
    """What a Counter tells of itself: who, which episode, which step, which action."""
    word, episode, time = obs
    assert tuple(next_obs) == (word, episode, time + 1)
    assert reward == 100 * episode + 10 * time + action
    if episode % 2 == 0:
        assert not truncated
    else:
        assert not terminated


@every_way
def test_every_transition_took_place_and_none_is_missing(way):
    env = WAYS[way]()
    obs = env.reset().copy()
    assert obs.shape == (2, 2, 3)
    words = obs[..., 0].copy()
    assert len(set(words.ravel())) == 4  # every slot has randomness of its own
    seen = {index: [] for index in np.ndindex(2, 2)}
    returns, lengths, ends = np.zeros((2, 2)), np.zeros((2, 2), int), 0
    for action in actions_of(env, 60):
        step = env.step(action)
        for index in np.ndindex(2, 2):
            ended = step.terminated[index] or step.truncated[index]
            if not step.valid[index]:
                # The step of a reset: nothing happened, and nothing may be made of it.
                assert step.reward[index] == 0
                assert not ended
                returns[index] = lengths[index] = 0
                continue
            check_transition(
                obs[index], action[index][0], step.reward[index], step.next_obs[index],
                step.terminated[index], step.truncated[index],
            )  # fmt: skip
            seen[index].append((*obs[index], bool(ended)))
            returns[index] += step.reward[index]
            lengths[index] += 1
            if ended:
                assert step.episode_return[index] == returns[index]
                assert step.episode_length[index] == lengths[index]
                returns[index] = lengths[index] = 0
                ends += 1
        obs = step.obs.copy()
    assert ends > 20
    for index, transitions in seen.items():
        episode = time = 0  # one after another, without a gap
        for row in transitions:
            assert row[:3] == (words[index], episode, time)
            episode, time = (episode + 1, 0) if row[3] else (episode, time + 1)
    env.close()


@every_way
def test_what_replay_draws_took_place(way):
    env = WAYS[way]()
    obs = env.reset().copy()
    memory = Replay(200, env.num_slots)
    for action in actions_of(env, 60):
        step = env.step(action)
        parts = (obs, step.reward, step.next_obs, step.terminated, step.truncated, step.valid)
        o, r, n, end, cut, v = (torch.as_tensor(x.copy()) for x in parts)
        memory.add(Transition(o, Acted(torch.as_tensor(action), {}), r, n, end, cut, v))
        obs = step.obs.copy()
    batch = memory.sample(torch.rand(2, 400, 2), torch.tensor([0.9, 0.9]))
    for row in np.ndindex(2, 400):
        o, n = batch.obs[row].numpy(), batch.next_obs[row].numpy()
        end, action = bool(batch.discount[row] == 0.0), float(batch.action[row][0])
        check_transition(o, action, float(batch.reward[row]), n, end, truncated=False)
    env.close()


def test_all_ways_show_the_same_episodes():
    """The modes differ in when they reset, not in what happens."""

    def transitions(way):
        env = WAYS[way]()
        obs, rows = env.reset().copy(), set()
        for _ in range(40):
            step = env.step(np.ones((2, 2, 1), dtype=np.float32))
            for index in np.ndindex(2, 2):
                if step.valid[index]:
                    ends = bool(step.terminated[index]), bool(step.truncated[index])
                    rows.add((*obs[index], step.reward[index], *step.next_obs[index], *ends))
            obs = step.obs.copy()
        env.close()
        return {row for row in rows if row[1] < 5}  # slower ways have not come further

    expected = transitions("own-sync")
    assert len(expected) > 50
    for way in WAYS:
        assert transitions(way) == expected, way


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_a_member_alone_is_the_member_in_a_population(vectorization):
    many = foreign_env(SPREAD, [5, 6, 7], 3, vectorization=vectorization)
    alone = foreign_env(SPREAD, [6], 2, vectorization=vectorization)
    np.testing.assert_array_equal(many.reset()[1, :2], alone.reset()[0])
    for action in actions_of(many, 40):
        large, small = many.step(action), alone.step(np.ascontiguousarray(action[1:2, :2]))
        for name, array in large.arrays().items():
            np.testing.assert_array_equal(array[1, :2], small.arrays()[name][0], err_msg=name)
    many.close()
    alone.close()


def test_a_slot_is_seeded_by_member_and_number():
    env = foreign_env(Counter, [3, 2**64 - 1], 2)
    obs = env.reset()
    for index, seed in enumerate(slot_seeds([3, 2**64 - 1], 2)):
        expected, _ = Counter().reset(seed=seed)
        np.testing.assert_array_equal(obs.reshape(4, 3)[index], expected)


def test_a_second_reset_goes_on_with_other_episodes():
    env = foreign_env(Counter, [1], 2)
    first = env.reset().copy()
    env.step(np.zeros((1, 2, 1), dtype=np.float32))
    second = env.reset()
    np.testing.assert_array_equal(second[..., 1], first[..., 1] + 1)
    assert env.step(np.zeros((1, 2, 1), dtype=np.float32)).episode_length.max() == 1


# --- what can be handed over ----------------------------------------------------------------------


def test_ids():
    native = foreign_env("headwise/HybridShoot-v0", [1, 2], 3, view="discrete")
    assert isinstance(native, NativeVecEnv)
    assert isinstance(foreign_env("HybridShoot", [1], 3), NativeVecEnv)
    pole = foreign_env("CartPole-v1", [1, 2], 3, max_episode_steps=5)
    obs = pole.reset()
    assert obs.shape == (2, 3, 4)
    seed = slot_seeds([2], 1)[0]
    other = gym.make("CartPole-v1")
    np.testing.assert_array_equal(obs[1, 0], other.reset(seed=seed)[0])
    for t in range(5):
        step = pole.step(np.ones((2, 3, 1), dtype=np.float32))
        np.testing.assert_array_equal(step.next_obs[1, 0], other.step(1)[0])
        assert step.truncated.all() == (t == 4)


def test_an_environment_with_a_spec_is_made_anew_for_every_slot():
    given = gym.make("CartPole-v1", max_episode_steps=3)
    env = foreign_env(given, [1, 2], 2)
    env.reset()
    lengths = [env.step(np.ones((2, 2, 1), dtype=np.float32)).truncated.all() for _ in range(3)]
    assert lengths == [False, False, True]
    assert not given.get_wrapper_attr("has_reset")  # it was not touched
    assert foreign_env(given, [1]).num_slots == 16


def test_a_lone_environment_serves_one_slot():
    for slots in (None, 1):
        env = foreign_env(Counter(), [4], slots)
        assert env.reset().shape == (1, 1, 3)
    for seeds, slots in (([4], 2), ([4, 5], 1), ([4, 5], None)):
        with pytest.raises(EnvError, match=r"Counter.*no `spec`.*Hand over what makes it"):
            foreign_env(Counter(), seeds, slots)


def test_a_callable_gets_the_settings():
    env = foreign_env(Counter, [1], 2, length=1)
    env.reset()
    assert env.step(np.zeros((1, 2, 1), dtype=np.float32)).terminated.all()


def test_a_vector_environment_says_how_many_slots_there_are():
    vec = vector(SyncVectorEnv, AutoresetMode.SAME_STEP, 6)
    env = foreign_env(vec, [1, 2, 3])
    assert (env.num_members, env.num_slots) == (3, 2)
    assert (
        foreign_env(lambda: vector(SyncVectorEnv, AutoresetMode.SAME_STEP, 6), [1]).num_slots == 6
    )


def test_our_own_vector_environments_as_foreign_ones():
    """In every mode they show what the trainer's own face shows."""
    for mode in ("next_step", "same_step", "disabled"):
        vec = gym.make_vec("headwise/Platform-v0", num_envs=4, autoreset_mode=mode)
        env = foreign_env(vec, [1, 2])
        obs = env.reset().copy()
        for action in actions_of(env, 50):
            step = env.step(action)
            ended = step.terminated | step.truncated
            went_on = step.valid & ~ended
            np.testing.assert_array_equal(step.obs[went_on], step.next_obs[went_on])
            assert (step.next_obs[step.valid] != obs[step.valid]).any(-1).all()
            obs = step.obs.copy()


def test_wrapped_vector_environments():
    vec = vector(SyncVectorEnv, AutoresetMode.NEXT_STEP, 2)
    env = foreign_env(gym.wrappers.vector.RecordEpisodeStatistics(vec), [1])
    env.reset()
    steps = [env.step(np.zeros((1, 2, 1), dtype=np.float32)).valid.copy() for _ in range(20)]
    assert not np.all(steps)


class OneSeed(SyncVectorEnv):
    """A vector environment as the API promises it: it takes one seed."""

    def __init__(self):
        super().__init__([Counter] * 2)
        del self.env_fns

    def reset(self, *, seed=None, options=None):
        if seed is not None and not isinstance(seed, int):
            raise TypeError(seed)
        return super().reset(seed=seed, options=options)


def test_a_vector_environment_may_take_one_seed_only():
    env = foreign_env(OneSeed, [5, 6])
    first = slot_seeds([5, 6], 2)[2]
    np.testing.assert_array_equal(env.reset()[1, 0], Counter().reset(seed=first)[0])
    with pytest.raises(EnvError, match=r"one seed for all.*one member"):
        foreign_env(OneSeed(), [5, 6], 1).reset()


# --- spaces -------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_nested_spaces(vectorization):
    env = foreign_env(Nested, [1, 2], 2, vectorization=vectorization)
    assert env.spec.names == (
        "arm/grip", "arm/joints[0]", "arm/joints[1]", "mode[0][0]", "mode[0][1]", "mode[1][0]",
        "mode[1][1]",
    )  # fmt: skip
    assert env.obs_spec.size == 3 + 2 + 4 + 5
    assert env.reset().shape == (2, 2, 14)
    for action in actions_of(env, 12):
        step = env.step(action)  # the environment itself refuses what is not in its space
        # A unit u of Box(-2, 6) is 2 + 4 u; the grip's first option is 2.
        expected = (2 + 4 * action[..., 1:3]).sum(-1) + 100 * (2 + action[..., 0])
        np.testing.assert_allclose(step.reward, expected, rtol=1e-5)
        assert (step.obs[..., :3].sum(-1) == 1).all()  # one-hot
    env.close()


def test_nested_spaces_of_a_vector_environment_are_the_same():
    ours = foreign_env(Nested, [1, 2], 2)
    theirs = foreign_env(SyncVectorEnv([Nested] * 4, autoreset_mode="SameStep"), [1, 2])
    np.testing.assert_array_equal(ours.reset(), theirs.reset())
    for action in actions_of(ours, 12):
        a, b = ours.step(action), theirs.step(action)
        for name, array in a.arrays().items():
            np.testing.assert_array_equal(array, b.arrays()[name], err_msg=name)


class Parameterized(Counter):
    action_space = OneOf((Box(0, 1, (1,)), Discrete(3)))

    def step(self, action):
        assert self.action_space.contains((action[0], action[1]))
        return super().step(action[0])


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_lone_numbers_come_in_the_type_that_the_space_samples(vectorization):
    class Lone(Counter):
        action_space = Dict(gear=Discrete(3), speed=Box(-1.0, 1.0, ()))

        def step(self, action):
            assert type(action["speed"]) is type(self.action_space["speed"].sample())  # an array
            assert type(action["gear"]) is np.int64
            return super().step(action["gear"] + action["speed"])

    env = foreign_env(Lone, [1], 2, vectorization=vectorization)
    env.reset()
    batch = env.step(np.array([[[2.0, 0.5], [1.0, -1.0]]], dtype=np.float32))
    np.testing.assert_array_equal(batch.reward, [[2.5, 0.0]])
    env.close()


def test_parameterized_actions():
    env = foreign_env(Parameterized, [1], 2)
    env.reset()
    step = env.step(np.array([[[0, 0.5, 0], [1, 0.0, 2]]], dtype=np.float32))
    np.testing.assert_array_equal(step.reward, [[0, 1]])


def test_views():
    class Wheel(Counter):
        action_space = Tuple((Discrete(3), Box(-4, 4, (1,))))

        def step(self, action):
            obs, _, terminated, truncated, info = super().step(0)
            return obs, float(10 * action[0] + action[1][0]), terminated, truncated, info

    binned = foreign_env(Wheel, [1], 1, view="discrete", bins=5)
    assert binned.spec.cardinalities == (3, 5)
    binned.reset()
    assert binned.step(np.array([[[2, 3]]], dtype=np.float32)).reward == 20 + 2  # -4, -2, 0, 2, 4
    driven = foreign_env(Wheel, [1], 1, view="continuous")
    driven.reset()
    assert driven.step(np.array([[[0.0, -0.5]]], dtype=np.float32)).reward == 10 - 2


def test_bounds_for_a_box_that_has_none():
    class Free(Counter):
        action_space = Box(-np.inf, np.inf, (1,))

        def step(self, action):
            return super().step(action[0])

    env = foreign_env(Free, [1], 1, bounds={"action": (-3, 5)})
    env.reset()
    assert env.step(np.full((1, 1, 1), 0.5, dtype=np.float32)).reward == 3  # 1 + 4 * 0.5


def test_arrays_are_ours_and_used_again():
    made = []

    def allocate(shape, dtype):
        made.append(np.zeros(shape, dtype))
        return made[-1]

    env = foreign_env(Counter, [1, 2], 2, allocate=allocate)
    obs = env.reset()
    step = env.step(np.zeros((2, 2, 1), dtype=np.float32))
    assert obs is step.obs
    assert all(any(x is y for y in made) for x in step.arrays().values())
    assert env.step(np.zeros((2, 2, 1), dtype=np.float32)).obs is step.obs


# --- resuming -----------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_an_environment_that_tells_its_state_is_resumed_exactly(vectorization):
    def make():
        limited = functools.partial(gym.wrappers.TimeLimit, max_episode_steps=4)
        resumable = functools.partial(Resumable, length=3, spread=3)
        return foreign_env(lambda: limited(resumable()), [1, 2], 3, vectorization=vectorization)

    env = make()
    assert env.can_snapshot
    env.reset()
    actions = actions_of(env, 40)
    for action in actions[:17]:
        env.step(action)
    snapshot = env.snapshot()
    expected = [
        {name: x.copy() for name, x in env.step(action).arrays().items()} for action in actions[17:]
    ]
    for again in (env, make()):
        assert again.can_snapshot
        again.restore(snapshot)
        for action, old in zip(actions[17:], expected, strict=True):
            for name, x in again.step(action).arrays().items():
                np.testing.assert_array_equal(x, old[name], err_msg=name)
        again.close()


def test_others_say_that_they_cannot():
    class OfAnotherKind(Counter):
        def get_state(self):
            return {"not": "bytes"}

        def set_state(self, state):
            raise AssertionError

    class OfAnotherSignature(Counter):
        def get_state(self, body):
            raise AssertionError

        def set_state(self, position, velocity):
            raise AssertionError

    for env in (
        foreign_env(Counter, [1], 2),
        foreign_env(OfAnotherKind, [1], 2),
        foreign_env(OfAnotherSignature, [1], 2),
        foreign_env(vector(SyncVectorEnv, AutoresetMode.SAME_STEP, 2, Resumable), [1]),
    ):
        env.reset()
        assert not env.can_snapshot
        with pytest.raises(EnvError, match=r"cannot be resumed exactly.*get_state"):
            env.snapshot()
        with pytest.raises(EnvError, match="cannot be resumed exactly"):
            env.restore(b"")


def test_a_bad_snapshot_is_refused():
    env = foreign_env(Resumable, [1], 2)
    with pytest.raises(EnvError, match="snapshot before reset"):
        env.snapshot()
    env.reset()
    good = env.snapshot()
    other = foreign_env(Resumable, [1], 3)
    other.reset()
    for bad in (
        b"",
        b"x",
        good[:-1],
        good + b"x",
        other.snapshot(),
        good.replace(b"slots", b"slot"),
    ):
        with pytest.raises(EnvError, match="snapshot is damaged or of another"):
            env.restore(bad)
    env.restore(good)
