"""One compiled environment as Gymnasium sees it."""

import dataclasses
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics

import headwise
from headwise.envs.native import NATIVE_NAMES, env_id, register_environments
from headwise.envs.native import drawing as render
from headwise.envs.native.gym_env import NativeEnv
from headwise.envs.native.info import info_of

VIEWS = [(name, view) for name in NATIVE_NAMES for view in info_of(name).reference.views]


def make(name, **settings):
    return gym.make(env_id(name), **settings)


@pytest.fixture
def fast_windows(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    known = render.info_of
    monkeypatch.setattr(
        render, "info_of", lambda name: dataclasses.replace(known(name), frames_per_second=1000)
    )


@pytest.mark.usefixtures("fast_windows")
@pytest.mark.parametrize("mode", [None, "rgb_array", "human"])
@pytest.mark.parametrize(("name", "view"), VIEWS)
def test_check_env_has_nothing_to_say(name, view, mode):
    env = make(name, view=view, render_mode=mode).unwrapped
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_env(env)
    expected = []
    if name == "CartPole":  # whose speeds have no bounds, as Gymnasium's have none
        expected = ["minimum value is -infinity", "maximum value is infinity"]
    elif name in ("Platform", "Pendulum") and view != "discrete":  # where numbers keep their units
        expected = ["symmetric and normalized space"]
    assert len(said) == len(expected)
    for warning, words in zip(said, expected, strict=True):
        assert words in str(warning.message)


def test_check_env_of_a_parameterized_action():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make("Platform", action_form="oneof").unwrapped, skip_render_check=True)


def test_every_environment_is_registered_once():
    register_environments()  # a second time does no harm
    ids = {env_id(name) for name in (*NATIVE_NAMES, "Lander")}
    assert ids <= set(gym.registry)
    assert gym.spec("headwise/Lander-v0").entry_point == "headwise.envs.lander:LanderEnv"
    code = "import headwise, sys; assert not {'PIL', 'pygame', 'pettingzoo'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "settings", "space", "spec"),
    [
        ("ContextualDecoupler", {}, "MultiDiscrete([5 5])", "head_0: Choice(5), head_1: Choice(5)"),
        (
            "HybridShoot",
            {"view": "discrete"},
            "MultiDiscrete([ 3 10 10])",
            "select: Choice(3), aim_x: Choice(10), aim_y: Choice(10)",
        ),
        (
            "HybridShoot",
            {"num_targets": 4},
            "Tuple(Discrete(4), Box(0.0, 1.0, (2,), float32))",
            "select: Choice(4), aim_x: Range(0, 1), aim_y: Range(0, 1)",
        ),
        (
            "HybridShoot",
            {"view": "continuous", "mode": "independent"},
            "Box(0.0, 1.0, (2,), float32)",
            "select: Range(0, 1), aim: Range(0, 1)",
        ),
        (
            "Platform",
            {},
            "Tuple(Discrete(3), Box(0.0, [ 30. 720. 430.], (3,), float32))",
            "kind: Choice(3), run: Range(0, 30), hop: Range(0, 720), leap: Range(0, 430)",
        ),
        (
            "Platform",
            {"discrete_heads": 2},
            "Tuple(MultiDiscrete([ 3 10]), Box(0.0, [720. 430.], (2,), float32))",
            "kind: Choice(3), run: Choice(10), hop: Range(0, 720), leap: Range(0, 430)",
        ),
        (
            "CoopPush",
            {"layout": {"particles": [(9, 9)], "boulders": [(0, 0)], "landmarks": [(9, 0)]},
             "view": "discrete"},
            "Discrete(9)",
            "particle_0: Choice(9)",
        ),
        (
            "CoopPush",
            {"layout": "independent"},
            "Tuple(Discrete(9), Box(-1.0, 1.0, (2,), float32))",
            "particle_0: Choice(9), particle_1_x: Range(-1, 1), particle_1_y: Range(-1, 1)",
        ),
    ],
)  # fmt: skip
def test_spaces(name, settings, space, spec):
    env = make(name, **settings)
    assert str(env.action_space) == space
    assert str(env.unwrapped.action_spec) == spec
    assert headwise.ActionCodec(env.action_space).spec.heads == env.unwrapped.action_spec.heads
    assert env.observation_space.dtype == np.float32


def play(env, seed, steps, space_seed=0):
    """Observations, rewards and flags of random play that resets at every end."""
    obs, _ = env.reset(seed=seed)
    env.action_space.seed(space_seed)
    rows = [obs]
    for _ in range(steps):
        obs, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert not (terminated and truncated)
        rows.append(np.append(obs, [reward, terminated, truncated]))
        if terminated or truncated:
            rows.append(env.reset()[0])
    return np.concatenate(rows).tobytes()


@pytest.mark.parametrize("name", NATIVE_NAMES)
def test_a_seed_is_a_stream(name):
    env = make(name)
    first = play(env, 7, 30)
    assert play(env, 7, 30) == first  # from the top again
    assert play(make(name), 7, 30) == first
    assert play(env, 8, 30) != first


def test_without_a_seed_the_stream_goes_on_and_begins_with_np_random():
    env = NativeEnv("HybridShoot")
    first, second = env.reset(seed=3)[0], env.reset()[0]
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(env.reset(seed=3)[0], first)
    np.testing.assert_array_equal(env.reset()[0], second)
    env_a, env_b, env_c = (NativeEnv("HybridShoot") for _ in range(3))
    env_a.np_random, env_b.np_random = np.random.default_rng(5), np.random.default_rng(5)
    np.testing.assert_array_equal(env_a.reset()[0], env_b.reset()[0])
    assert not np.array_equal(env_a.reset()[0], env_c.reset()[0])


def episode_length(env, action):
    env.reset(seed=0)
    for length in range(1, 1000):
        _, _, terminated, truncated, _ = env.step(action)
        assert not terminated
        if truncated:
            return length
    return None


MISS = (0, np.zeros(2, np.float32))


def test_time_limits_are_native_and_make_may_set_them():
    assert make("HybridShoot").unwrapped.max_episode_steps == 5
    assert episode_length(make("HybridShoot").unwrapped, MISS) == 5
    assert "TimeLimit" not in str(make("HybridShoot"))
    for limit in (3, 7):  # shorter than its own, and longer
        env = make("HybridShoot", max_episode_steps=limit)
        assert episode_length(env, MISS) == limit
        assert episode_length(env.unwrapped, MISS) == limit
        assert episode_length(gym.make(env.spec), MISS) == limit
        assert episode_length(NativeEnv("HybridShoot", max_episode_steps=limit), MISS) == limit
    assert episode_length(make("HybridShoot", max_episode_steps=-1), MISS) is None
    # the limit of the layout, which a registered number could not know
    assert make("CoopPush", layout="independent").unwrapped.max_episode_steps == 60
    spaces = [make("CoopPush", max_episode_steps=n).observation_space for n in (10, 20)]
    assert spaces[0].high[0] < spaces[1].high[0]  # bounds follow the limit


def test_an_end_at_the_limit_is_terminated_not_truncated():
    env = make("HybridShoot", num_targets=1, max_episode_steps=None)
    env.reset(options={"targets": [[0.5, 0.5]], "elapsed": 4})
    assert env.step((0, np.full(2, 0.5, np.float32)))[2:4] == (True, False)


def test_gymnasium_wrappers_find_what_they_need():
    env = RecordEpisodeStatistics(make("HybridShoot"))
    env.reset(seed=0)
    total = 0.0
    for _ in range(5):
        _, reward, _, truncated, info = env.step(MISS)
        total += reward
    assert truncated
    assert info["episode"]["r"] == pytest.approx(total)
    assert info["episode"]["l"] == 5


# --- scenarios ---


def test_scenarios_by_part_and_by_state():
    env = make("HybridShoot", num_targets=2)
    obs, _ = env.reset(seed=0, options={"targets": [[0.25, 0.5], [1, 0]]})
    np.testing.assert_array_equal(obs, [0.25, 0.5, 1, 1, 0, 1])
    env.step((1, np.array([1.0, 0.0])))
    state = env.unwrapped.get_state()
    np.testing.assert_array_equal(state["alive"], [1, 0])
    assert state["elapsed"] == 1
    again, _ = make("HybridShoot", num_targets=2).reset(options={"state": state})
    np.testing.assert_array_equal(again, [0.25, 0.5, 1, 1, 0, 0])
    # a part at the top level has the last word
    obs, _ = env.reset(options={"state": state, "alive": [0, 1]})
    np.testing.assert_array_equal(obs[2::3], [0, 1])
    np.testing.assert_array_equal(env.unwrapped.set_state({"alive": [1, 1]})[2::3], [1, 1])


@pytest.mark.parametrize("name", NATIVE_NAMES)
def test_a_state_read_back_goes_on_alike(name):
    settings = {"noise": 0.0} if name == "Platform" else {}
    env = NativeEnv(name, **settings)
    env.reset(seed=1)
    env.action_space.seed(1)
    twin = NativeEnv(name, **settings)
    twin.reset(seed=1)
    for _ in range(20):
        twin.set_state(env.get_state())
        action = env.action_space.sample()
        ours, theirs = env.step(action), twin.step(action)
        if name != "ContextualDecoupler":  # where the next state is chance alone
            np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[1:4] == theirs[1:4]
        if ours[2] or ours[3]:
            env.reset()
            twin.reset()


# --- parameterized actions ---


def test_one_of_is_the_hybrid_action_with_one_number():
    env, plain = make("Platform", action_form="oneof"), make("Platform")
    assert isinstance(env.action_space, gym.spaces.OneOf)
    assert env.unwrapped.action_spec.active([1, 0, 5, 0]).tolist() == [True, False, True, False]
    env.reset(seed=2)
    plain.reset(seed=2)
    for kind, strength in ((1, 400.0), (2, 250.0), (0, 10.0)):
        strengths = np.zeros(3, np.float32)
        strengths[kind] = strength
        ours = env.step((np.int64(kind), np.array([strength], np.float32)))
        theirs = plain.step((kind, strengths))
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[1:] == theirs[1:]
