"""What one compiled environment refuses, and that it is as it was afterwards."""

import gymnasium as gym
import numpy as np
import pytest

from headwise import ConfigError, EnvError, SpaceError
from headwise.envs.native import env_id
from headwise.envs.native.gym_env import NativeEnv

MISS = (0, np.zeros(2, np.float32))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("HybridShoot", {"target": [[0, 0]] * 3}, "unknown reset option.*Did you mean 'targets'"),
        ("HybridShoot", {"state": {"boulders": 1}}, "unknown reset option; got 'boulders'"),
        ("HybridShoot", {"reset_mask": np.array([True])}, "unknown reset option"),
        ("HybridShoot", {"targets": [[0, 0]]}, r"'targets' has another shape; got \(1, 2\)"),
        ("HybridShoot", {"targets": [[0, 0], [0], [1]]}, "no array of numbers"),
        ("HybridShoot", {"targets": "here"}, "no array of numbers"),
        ("HybridShoot", {"targets": [[0, 0], [0, 2], [0, 1]]}, r"slot 0: targets must be in \[0"),
        ("HybridShoot", {"targets": np.full((3, 2), np.nan)}, "slot 0; got nan"),
        ("HybridShoot", {"alive": [0, 0, 0]}, "a target must be alive"),
        ("HybridShoot", {"alive": [0.5, 1, 1]}, "'alive'; got .*; allowed: whole numbers"),
        ("HybridShoot", {"elapsed": 5}, "elapsed must be from 0 to 4"),
        ("HybridShoot", {"state": 3}, "option 'state' is no dict"),
        ("HybridShoot", [1], "options are no dict"),
        ("ContextualDecoupler", {"context": 2}, "context must be 0 or 1"),
        ("ContextualDecoupler", {"targets": [1e30, 0]}, "got 1e.30"),
        ("CoopPush", {"boulders": [[np.inf, 0]]}, "got inf"),
        ("Platform", {"x": 300}, "must stand on a platform"),
    ],
)
def test_impossible_scenarios_are_refused_and_change_nothing(name, options, message):
    env = NativeEnv(name)
    with pytest.raises(EnvError, match=message):
        env.reset(options=options)
    with pytest.raises(EnvError, match="step before reset"):  # still
        env.step(env.action_space.sample())
    env.reset(seed=4)
    env.step(env.action_space.sample())
    before, random = env.snapshot(), env.np_random.bit_generator.state
    with pytest.raises(EnvError, match=message):
        env.reset(seed=5, options=options)
    if isinstance(options, dict) and not {"state", "reset_mask"} & set(options):
        with pytest.raises(EnvError, match=message):
            env.set_state(options)
    assert env.snapshot() == before
    assert env.np_random.bit_generator.state == random


BAD_ACTIONS = [
    ("HybridShoot", {}, (3, np.zeros(2)), EnvError, "slot 0 .*'select'; got 3; .* 0 to 2"),
    ("HybridShoot", {}, (-1, np.zeros(2)), EnvError, "got -1"),
    ("HybridShoot", {}, (2**40, np.zeros(2)), EnvError, "out of range at head 'select'"),
    ("HybridShoot", {}, (-(2**40), np.zeros(2)), EnvError, "out of range at head 'select'"),
    ("HybridShoot", {}, (np.uint64(2**63), np.zeros(2)), EnvError, "out of range at head"),
    ("HybridShoot", {}, (0, np.array([np.nan, 0])), EnvError, "'aim_x'; got -?nan"),
    ("HybridShoot", {}, (0, np.array([0, 1.1])), EnvError, "'aim_y'; got 1.1"),
    ("HybridShoot", {}, (0, np.array([0, 1e300])), EnvError, "'aim_y'; got inf"),
    ("HybridShoot", {}, (0, np.zeros(3)), SpaceError, r"wrong shape; got shape \(3,\)"),
    ("HybridShoot", {}, (np.zeros(1, int), np.zeros(2)), SpaceError, "wrong shape"),
    ("HybridShoot", {}, (0.0, np.zeros(2)), SpaceError, "wrong type; got dtype float64: 0.0"),
    ("HybridShoot", {}, (True, np.zeros(2)), SpaceError, "wrong type"),
    ("HybridShoot", {}, (0, ["a", "b"]), SpaceError, "wrong type"),
    ("HybridShoot", {}, (0, [[1], [2, 3]]), SpaceError, "wrong type"),
    ("HybridShoot", {}, None, SpaceError, "HybridShoot: the action has the wrong structure"),
    ("HybridShoot", {}, np.zeros(3), SpaceError, "wrong structure"),
    ("HybridShoot", {}, (0,), SpaceError, "wrong structure"),
    ("HybridShoot", {"view": "discrete"}, [0, 0, 10], EnvError, "'aim_y'; got 10"),
    ("HybridShoot", {"view": "continuous"}, [0, 0, -0.1], EnvError, "got -0.1"),
    ("CoopPush", {"view": "continuous"}, np.full(8, 1.5), EnvError, "'particle_0_x'; got 1.5"),
    ("CoopPush", {"view": "discrete"}, np.full(4, 9), EnvError, "'particle_0'; got 9"),
    ("ContextualDecoupler", {}, [0, 5], EnvError, "'head_1'; got 5"),
    ("ContextualDecoupler", {}, {"head_0": 1}, SpaceError, "wrong type"),
    ("Platform", {}, (1, [0, 721, 0]), EnvError, "'hop'; got 721"),
    ("Platform", {"action_form": "oneof"}, (1, [721.0]), EnvError, "'hop'; got 721"),
    ("Platform", {"action_form": "oneof"}, (3, [1.0]), EnvError, "'kind'; got 3"),
    ("Platform", {"action_form": "oneof"}, (1, 1.0), SpaceError, "wrong shape"),
    ("Platform", {"action_form": "oneof"}, 1, SpaceError, "wrong structure"),
]


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(("name", "settings", "action", "error", "message"), BAD_ACTIONS)
def test_bad_actions_are_refused_and_change_nothing(
    name, settings, action, error, message, wrapped
):
    env = gym.make(env_id(name), **settings)
    env = env if wrapped else env.unwrapped
    env.reset(seed=0)
    if any(env.step(env.action_space.sample())[2:4]):
        env.reset()
    before = env.unwrapped.snapshot()
    with pytest.raises(error, match=message):
        env.step(action)
    assert env.unwrapped.snapshot() == before


def test_good_actions_in_unusual_clothes():
    outcomes = []
    for action in [
        (np.int64(1), np.full(2, 0.5, np.float32)),
        (1, [0.5, 0.5]),
        [np.int8(1), (0.5, np.float64(0.5))],
        (np.array(1, dtype=np.uint64), np.full(2, 0.5, np.float16)),
    ]:
        env = NativeEnv("HybridShoot")
        env.reset(seed=0)
        outcomes.append(env.step(action)[1])
    assert len(set(outcomes)) == 1


def test_calls_at_the_wrong_time():
    env = NativeEnv("HybridShoot", render_mode="rgb_array")
    for call in (lambda: env.step(MISS), env.render, lambda: env.set_state({})):
        with pytest.raises(EnvError, match=r"before reset. Call reset\(\) first"):
            call()
    env.reset(seed=0)
    for _ in range(5):
        env.step(MISS)
    before = env.snapshot()
    with pytest.raises(EnvError, match="HybridShoot: step after the end"):
        env.step(MISS)
    assert env.snapshot() == before
    env.close()
    env.close()
    for call in (lambda: env.step(MISS), env.reset, env.render, lambda: env.set_state({})):
        with pytest.raises(EnvError, match="after close"):
            call()


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", True, [1, 2]])
def test_impossible_seeds(seed):
    env = NativeEnv("HybridShoot")
    env.reset(seed=1)
    before = env.snapshot()
    with pytest.raises(EnvError, match="seed"):
        env.reset(seed=seed)
    assert env.snapshot() == before


@pytest.mark.parametrize(
    ("name", "settings", "error", "message"),
    [
        ("HybridShot", {}, ConfigError, "Did you mean 'HybridShoot'"),
        ("HybridShoot", {"num_target": 3}, ConfigError, "Did you mean 'num_targets'"),
        ("HybridShoot", {"num_targets": 0}, EnvError, "num_targets must be from 1"),
        ("HybridShoot", {"hit_radius": -1}, EnvError, "hit_radius must be in"),
        ("HybridShoot", {"view": "discrite"}, EnvError, "'view' cannot be that; got 'discrite'"),
        ("HybridShoot", {"max_episode_steps": -3}, EnvError, "max_episode_steps"),
        ("HybridShoot", {"render_mode": "ansi"}, ConfigError, "allowed: human, rgb_array"),
        ("HybridShoot", {"action_form": "oneof"}, ConfigError, "Platform is"),
        ("HybridShoot", {"action_form": "tree"}, ConfigError, "unknown action form"),
        ("ContextualDecoupler", {"view": "hybrid"}, ConfigError, "one view only"),
        (
            "Platform",
            {"param_heads": 2, "action_form": "oneof"},
            ConfigError,
            "not one discrete head",
        ),
        ("CoopPush", {"layout": {"boulders": [[0, 0]]}}, EnvError, "custom layout needs"),
        ("CoopPush", {"boulders": [(0, 0), (1,)]}, EnvError, "'boulders' cannot be that"),
        ("CoopPush", {"layout": {"rocks": [[0, 0]]}}, ConfigError, "unknown setting"),
        (
            "CoopPush",
            {"particles": [[np.nan, 0]], "boulders": [[0, 0]], "landmarks": [[1, 1]]},
            EnvError,
            "must be finite",
        ),
    ],
)
def test_impossible_settings(name, settings, error, message):
    with pytest.raises(error, match=message):
        NativeEnv(name, **settings)
