"""Compiled environments as teams of agents."""

import subprocess
import sys
import warnings

import numpy as np
import pettingzoo
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Tuple

from headwise import ActionCodec, ConfigError, EnvError, SpaceError
from headwise.envs.native.gym_env import NativeEnv
from headwise.envs.native.parallel_env import NativeParallelEnv, parallel_env

with warnings.catch_warnings():  # of its own examples, which it imports by their old names
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test, parallel_seed_test
    from pettingzoo.test.state_test import test_parallel_env as check_state

TEAMS = [
    ("CoopPush", {"view": "discrete"}),
    ("CoopPush", {"view": "hybrid", "max_episode_steps": 30}),
    ("CoopPush", {"view": "continuous", "observation": "positions", "max_episode_steps": 30}),
    ("CoopPush", {"layout": "independent"}),
    ("HybridShoot", {"view": "discrete"}),
    ("HybridShoot", {"view": "hybrid", "mode": "independent"}),
    ("HybridShoot", {"view": "hybrid", "discrete_heads": 2}),
    ("HybridShoot", {"view": "continuous"}),
    ("ContextualDecoupler", {}),
    ("ContextualDecoupler", {"one_hot": True}),
]


@pytest.mark.parametrize(("name", "settings"), TEAMS)
def test_pettingzoo_has_nothing_to_say(name, settings):
    parallel_api_test(parallel_env(name, **settings), num_cycles=60)
    parallel_seed_test(lambda: parallel_env(name, **settings), num_cycles=30)
    check_state(parallel_env(name, **settings))


@pytest.mark.parametrize(
    ("name", "settings", "spaces"),
    [
        (
            "CoopPush",
            {"view": "hybrid"},
            {f"particle_{i}": Discrete(9) if i < 2 else Box(-1, 1, (2,)) for i in range(4)},
        ),
        ("HybridShoot", {}, {"selector": Discrete(3), "shooter": Box(0, 1, (2,))}),
        (
            "HybridShoot",
            {"view": "discrete"},
            {"selector": Discrete(3), "shooter": MultiDiscrete([10, 10])},
        ),
        (
            "HybridShoot",
            {"view": "discrete", "mode": "independent"},
            {"selector": Discrete(3), "shooter": Discrete(100)},
        ),
        (
            "HybridShoot",
            {"discrete_heads": 2},
            {"selector": Discrete(3), "shooter": Tuple([Discrete(10), Box(0, 1, (1,))])},
        ),
        (
            "HybridShoot",
            {"view": "continuous"},
            {"selector": Box(0, 1, (1,)), "shooter": Box(0, 1, (2,))},
        ),
        ("ContextualDecoupler", {}, {"head_0": Discrete(5), "head_1": Discrete(5)}),
    ],
)
def test_who_may_do_what(name, settings, spaces):
    env = parallel_env(name, **settings)
    assert env.possible_agents == list(spaces)
    assert env.agents == []  # nobody, before the first reset
    assert {agent: env.action_space(agent) for agent in env.possible_agents} == spaces
    for agent in env.possible_agents:
        assert env.action_space(agent) is env.action_space(agent)
        assert env.observation_space(agent) is env.observation_space(agent)
    # the heads of the team are those of the environment
    codec = ActionCodec.of_agents(env.action_spaces)
    assert sorted(map(str, codec.spec.heads)) == sorted(
        map(str, NativeEnv(name, **settings).action_spec.heads)
    )


def test_a_particle_sees_itself_first():
    env = parallel_env("CoopPush", shuffle=False)
    obs, infos = env.reset(seed=0)
    whole = env.state()
    places = whole[:16].reshape(4, 4)[:, :2] * 25
    np.testing.assert_allclose(places, [[5, 5], [-5, 5], [-5, -5], [5, -5]])
    np.testing.assert_array_equal(obs["particle_0"], whole)
    # its block of four and the first one change places, all else stays
    swapped = np.concatenate([whole[8:12], whole[4:8], whole[0:4], whole[12:]])
    np.testing.assert_array_equal(obs["particle_2"], swapped)
    assert infos == {agent: {} for agent in env.agents}
    positions = parallel_env("CoopPush", shuffle=False, observation="positions")
    obs, _ = positions.reset()
    np.testing.assert_allclose(obs["particle_3"][:8] * 25, [5, -5, -5, 5, -5, -5, 5, 5])
    for agent in positions.agents:
        assert obs[agent] in positions.observation_space(agent)


@pytest.mark.parametrize(("name", "settings"), TEAMS)
def test_it_plays_as_the_gymnasium_one(name, settings):
    team, env = parallel_env(name, **settings), NativeEnv(name, **settings)
    team.reset(seed=5)
    np.testing.assert_array_equal(team.state(), env.reset(seed=5)[0])
    codec = ActionCodec(env.action_space)
    env.action_space.seed(1)
    while team.agents:
        action = env.action_space.sample()
        heads = dict(zip(env.action_spec.names, codec.to_heads(action), strict=True))
        actions = {}
        for agent in team.agents:
            mine = ActionCodec(team.action_space(agent))
            actions[agent] = mine.to_env([heads[head] for head in team.action_spec(agent).names])
        agents = list(team.agents)
        _, rewards, terminated, truncated, infos = team.step(actions)
        obs, *rest, _ = env.step(action)
        np.testing.assert_array_equal(team.state(), obs)
        for agent in agents:
            assert [rewards[agent], terminated[agent], truncated[agent]] == rest
        assert set(infos) == set(agents)
    assert any(rest[1:])


def test_pettingzoo_makes_it():
    env = pettingzoo.make("parallel", "headwise/CoopPush-v0", max_cycles=3, view="discrete")
    assert isinstance(env, NativeParallelEnv)
    assert str(env) == "headwise/CoopPush-v0"
    env.reset(seed=0)
    for _ in range(3):
        _, _, _, truncated, _ = env.step(dict.fromkeys(env.agents, 0))
    assert all(truncated.values())
    assert env.agents == []


def test_scenarios():
    env = parallel_env("HybridShoot", num_targets=1)
    obs, _ = env.reset(options={"targets": [[0.25, 0.75]]})
    np.testing.assert_array_equal(obs["shooter"], [0.25, 0.75, 1])
    state = env.get_state()
    env.step({"selector": 0, "shooter": np.array([0.25, 0.75])})
    assert env.agents == []
    with pytest.raises(EnvError, match="step after the end"):
        env.step({"selector": 0, "shooter": np.zeros(2)})
    obs = env.set_state(state)
    assert env.agents == ["selector", "shooter"]
    np.testing.assert_array_equal(obs["selector"], [0.25, 0.75, 1])
    with pytest.raises(EnvError, match="Did you mean 'targets'"):
        env.reset(options={"target": [[0, 0]]})


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        (None, SpaceError, "no dict by agent"),
        ({"selector": 0}, SpaceError, r"every agent must act.*\['selector'\]"),
        ({"selector": 0, "shooter": [0, 0], "spotter": 0}, SpaceError, "and no other"),
        ({"selector": 0, "shooter": [0, 0, 0]}, SpaceError, "the action of shooter has the wrong"),
        ({"selector": 0.5, "shooter": [0, 0]}, SpaceError, "the action of selector is of the"),
        ({"selector": 3, "shooter": [0, 0]}, EnvError, "'select'; got 3"),
        ({"selector": 0, "shooter": [0, np.nan]}, EnvError, "'aim_y'; got -?nan"),
    ],
)
def test_bad_actions_change_nothing(actions, error, message):
    env = parallel_env("HybridShoot")
    with pytest.raises(EnvError, match="step before reset"):
        env.step({"selector": 0, "shooter": [0, 0]})
    env.reset(seed=0)
    before = env.snapshot()
    with pytest.raises(error, match=message):
        env.step(actions)
    assert env.snapshot() == before
    env.close()
    with pytest.raises(EnvError, match="after close"):
        env.step({"selector": 0, "shooter": [0, 0]})


def test_unknown_names():
    with pytest.raises(ConfigError, match="Did you mean 'CoopPush'"):
        parallel_env("CoopPus")
    with pytest.raises(ConfigError, match="unknown environment for a team; got 'Platform'"):
        parallel_env("Platform")
    with pytest.raises(ConfigError, match="Did you mean 'shooter'"):
        parallel_env("HybridShoot").action_space("shoter")


def test_pictures():
    env = parallel_env("CoopPush", render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (400, 600, 3)


def test_without_pettingzoo_it_says_how_to_get_it():
    code = (
        "import sys; sys.modules['pettingzoo'] = None\n"
        "import headwise\n"
        "try:\n"
        "    import headwise.envs.native.parallel_env\n"
        "except headwise.EnvError as error:\n"
        "    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "pip install 'headwise[pettingzoo]'" in done.stdout
