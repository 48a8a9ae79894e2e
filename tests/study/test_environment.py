"""Environments of a study: Headwise's by name, anybody's by id, and what is refused."""

import sys

import gymnasium as gym
import pytest
from tiny_study import tiny_cell

from headwise import Agent, ConfigError
from headwise.envs.foreign import wrap
from headwise.envs.make import environments
from headwise.envs.native.parallel_env import parallel_env
from headwise.study import Environment, Options, Store, Study, conduct
from headwise.study.environment import make_env

MODULE = """
import gymnasium as gym
gym.register("Ours-v3", entry_point="gymnasium.envs.classic_control:CartPoleEnv")
"""


@pytest.fixture
def forgetful():
    """What is registered in Gymnasium is forgotten again."""
    before = dict(gym.registry)
    yield
    gym.registry.clear()
    gym.registry.update(before)


def study_of(*environments, view=None, **settings):
    return Study.grid(
        "own",
        environments=environments,
        views=[view],
        algorithms=["ppo"],
        factorizations=["shared"],
        total_timesteps=64,
        num_envs=2,
        seeds=2,
        settings=tiny_cell("ppo", "shared", **settings).settings,
    )


def test_headwises_own_go_by_their_names():
    for name in ("Platform", "headwise/Platform-v0"):
        env = Environment(name)
        assert (env.name, env.label) == ("Platform", "Platform")


def test_any_id_of_gymnasium_is_one(tmp_path):
    env = Environment("CartPole-v1", settings={"sutton_barto_reward": True})
    assert (env.name, env.label) == ("CartPole-v1", "CartPole-v1")
    study = study_of(env, Environment("CartPole-v1", "cart"))
    runs = study.runs()
    assert len({run.id for run in runs}) == 4  # a setting makes it another
    summary = conduct(study, tmp_path, Options(executor="inline"))
    assert (summary.finished, summary.failed) == (4, 0)
    store = Store(tmp_path)
    # With that setting a pole that falls costs one and nothing else counts.
    assert store.episodes(runs[0].id).returns.max() == -1.0
    assert store.episodes(runs[2].id).returns.min() >= 8.0
    assert store.fingerprint(runs[0].id)["packed_with"] == [run.id for run in runs[:2]]


def test_a_module_before_the_id_is_imported(tmp_path, monkeypatch, forgetful):
    (tmp_path / "our_robots.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    env = Environment("our_robots:Ours-v3")
    assert (env.name, env.label) == ("our_robots:Ours-v3", "Ours-v3")
    del sys.modules["our_robots"]


def test_settings_of_the_wrapping_are_taken_out():
    pendulum = Environment("Pendulum-v1", settings={"bins": 5, "g": 5.0})
    (run, _) = study_of(pendulum, view="discrete").runs()
    env = make_env(run, [0, 1], 3)
    assert [head.n for head in env.spec.heads] == [5]
    assert (env.num_members, env.num_slots) == (2, 3)
    env.close()


def test_a_team_is_registered_by_what_makes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "_entries", dict(environments._entries))

    @environments.register("Team")
    def team(seeds, num_slots, **settings):
        return wrap(lambda: parallel_env("CoopPush"), seeds, num_slots, **settings)

    study = study_of(Environment("Team", settings={"team_reward": "mean"}), view="discrete")
    summary = conduct(study, tmp_path, Options(executor="inline", keep_checkpoints=True))
    assert (summary.finished, summary.checkpoints) == (2, 2)
    agent = Agent.load(Store(tmp_path).checkpoint(study.runs()[0].id))
    seen = {name: space.sample() for name, space in agent.face.observation_space.items()}
    action = agent.predict(seen)  # by agent, as the team itself speaks
    assert all(action[name] in space for name, space in agent.face.action_space.items())
    agent.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Environment(dict), "must be named; got <class 'dict'>.*register"),
        (
            lambda: Environment("HybridShoot", {"num_targets": 4}),
            "label of an environment must be a text; got {'num_targets': 4}.*, settings=",
        ),
        (
            lambda: Environment("HybridShoot", "shoot", "dependent"),
            "settings of an environment must be a dict; got dependent",
        ),
        (lambda: Environment("CartPole-v7"), "Did you mean 'CartPole-v1'"),
        (lambda: Environment("CartPole"), "Did you mean 'CartPole-v1'"),
        (lambda: Environment("Platforms"), "Did you mean 'Platform'"),
        (
            lambda: Environment("Zyx"),
            r"allowed: .*HybridShoot.*Gymnasium knows\. Your own.*register",
        ),
        (lambda: Environment("no_such_module:X-v0"), "cannot be imported.*no_such_module"),
        (
            lambda: study_of(Environment("CartPole-v1", settings={"f": len})).runs(),
            r"'CartPole-v1' must be plain data.*gymnasium\.register",
        ),
    ],
)
def test_what_is_none_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize(
    ("env", "view", "message"),
    [
        (Environment("HybridShoot", "s", {"modus": "x"}), "hybrid", "'s' of .*Did you mean 'mode'"),
        (
            Environment("HybridShoot", "s", {"mode": "x"}),
            "hybrid",
            "'s' of the study cannot be made",
        ),
        (Environment("HybridShoot"), "hybrids", "hybrid"),
        (Environment("Lander", settings={"win": 1}), None, "'Lander' of .*'win'"),
        (Environment("CartPole-v1", settings={"sutton": 1}), None, "TypeError: .*'sutton'"),
        (Environment("Pendulum-v1", settings={"bins": 3}), None, "bins without a view"),
    ],
)
def test_a_wrong_setting_is_told_before_anything_is_trained(tmp_path, env, view, message):
    study = study_of(env, "Platform", view=view)
    with pytest.raises(ConfigError, match=message):
        conduct(study, tmp_path / "x", Options(executor="inline"))
    assert not (tmp_path / "x").exists()
    if view == "hybrid":  # what is not asked for need not be right
        options = Options(executor="inline", only="Platform")
        assert conduct(study, tmp_path / "x", options).finished == 2


def test_finished_runs_need_no_environment_any_more(tmp_path, forgetful):
    gym.register("Gone-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv")
    study = study_of("Gone-v0")
    options = Options(executor="inline")
    assert conduct(study, tmp_path, options).finished == 2
    del gym.registry["Gone-v0"]
    assert conduct(study, tmp_path, options).finished == 2
    with pytest.raises(ConfigError, match="'Gone-v0' of the study cannot be made"):
        conduct(study.with_seeds(3), tmp_path, options)
