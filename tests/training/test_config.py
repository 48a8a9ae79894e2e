"""One configuration: settings find their owner by name, members part and meet, ids stay."""

import ast
import dataclasses
import inspect
import json
from pathlib import Path

import pytest

import headwise as hw
from headwise.errors import ConfigError
from headwise.study import Cell, Environment
from headwise.training.config import EnvironmentConfig, Normalization, RunConfig, Where


def config(**settings):
    return RunConfig.of("ppo", "HybridShoot", **settings)


def test_settings_find_their_owner_by_name():
    found = config(
        factorization="qplex",
        learning_rate=1e-3,
        mixer_width=8,
        view="hybrid",
        env_settings={"num_targets": 4},
        normalize_obs=True,
        num_envs=4,
        total_timesteps=1000,
    )
    assert (found.algorithm.learning_rate, found.factorization.mixer_width) == (1e-3, 8)
    assert found.environment == EnvironmentConfig(
        env="HybridShoot", env_settings={"num_targets": 4}, view="hybrid"
    )
    assert found.normalization == Normalization(normalize_obs=True)
    assert (found.num_envs, found.total_timesteps) == (4, 1000)
    other = found.replace(learning_rate=0.1, mixer_width=16, normalize_obs=False, num_envs=8)
    assert (other.algorithm.learning_rate, other.factorization.mixer_width, other.num_envs) == (
        0.1,
        16,
        8,
    )
    assert not other.normalization.is_on
    assert other.environment == found.environment
    assert found.replace() == found


def test_parts_that_are_made_already_are_taken_and_may_be_changed():
    found = RunConfig.of(
        hw.PPO(learning_rate=0.5), factorization=hw.QPLEX(mixer_width=8), gamma=0.5
    )
    assert found.algorithm == hw.PPO(learning_rate=0.5, gamma=0.5)
    assert found.factorization == hw.QPLEX(mixer_width=8)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gama": 0.9}, "unknown setting of ppo or shared; got 'gama'. Did you mean 'gamma'?"),
        ({"policy_kwargs": 1}, "Did you mean 'net_arch', which Stable-Baselines3 calls"),
        ({"n_envs": 4}, "Did you mean 'num_envs'"),
        ({"normalize_obss": True}, "Did you mean 'normalize_obs'?"),
        ({"algorithm": "dqn"}, "unknown setting of ppo or shared; got 'algorithm'"),
        ({"where": 1}, "unknown setting of ppo or shared; got 'where'"),
        ({"factorization": "vnd"}, "Did you mean 'vdn'?"),
        ({"mixer_width": 8}, "unknown setting of ppo or shared; got 'mixer_width'"),
        ({"num_envs": 0}, "num_envs must be a count; got 0"),
        ({"total_timesteps": -1}, "total_timesteps must be a count; got -1"),
        ({"normalize_obs": "no"}, "normalize_obs is a switch; got no"),
    ],
)
def test_what_is_wrong_is_told_with_what_was_meant(settings, words):
    with pytest.raises(ConfigError) as told:
        config(**settings)
    assert words in str(told.value)


def test_what_cannot_be_said_somewhere_is_not_suggested_there():
    where = Where(beside=("seeds",), without=("normalize_obs",))
    with pytest.raises(ConfigError) as told:
        RunConfig.of("ppo", None, where, normalize_obs=True)
    allowed = str(told.value).partition("Allowed: ")[2].rstrip(".").split(", ")
    assert {"seeds", "factorization", "normalize_reward", "learning_rate"} <= set(allowed)
    assert "normalize_obs" not in allowed


@pytest.mark.parametrize("name", ["environment", "algorithm", "where", "total_timesteps"])
def test_an_agent_refuses_what_it_is_told_otherwise(name):
    with pytest.raises(ConfigError, match=f"unknown setting of ppo or shared; got '{name}'"):
        hw.Agent("ppo", "HybridShoot", **{name: "x"})


# --- members --------------------------------------------------------------------------------------


def test_members_meet_and_part():
    each = [config(learning_rate=learning_rate, gamma=0.9) for learning_rate in (0.1, 0.2, 0.1)]
    merged = RunConfig.merged(each)
    assert merged.algorithm == hw.PPO(learning_rate=(0.1, 0.2, 0.1), gamma=0.9)
    assert [merged.for_member(i) for i in range(3)] == each
    assert RunConfig.merged(each[:1] * 2) == each[0]


@pytest.mark.parametrize(
    "other",
    [{"n_steps": 16}, {"factorization": "vdn"}, {"num_envs": 4}, {"normalize_obs": True}],
    ids=lambda other: next(iter(other)),
)
def test_what_cannot_differ_cannot_meet(other):
    with pytest.raises(ConfigError, match="cannot be members of one population"):
        RunConfig.merged([config(), config(**other)])
    with pytest.raises(ConfigError, match="cannot be members of one population"):
        RunConfig.merged([config(), RunConfig.of("dqn", "HybridShoot")])


def test_members_are_told_apart_by_seed_or_by_setting():
    config(learning_rate=(0.1, 0.2)).check_members((3, 3))
    with pytest.raises(ConfigError, match=r"a seed is given twice; got \[3\]"):
        config().check_members((3, 3))
    with pytest.raises(ConfigError, match="learning_rate"):
        config(learning_rate=(0.1, 0.2)).check_members((1, 2, 3))


# --- as plain data --------------------------------------------------------------------------------

FULL = {
    "learning_rate": (0.1, 0.2),
    "bins": {"aim_x": 3},
    "view": "hybrid",
    "normalize_reward": True,
}


@pytest.mark.parametrize("settings", [{}, FULL, {"total_timesteps": 64, "env_settings": {"x": 1}}])
def test_there_and_back_through_json(settings):
    ours = config(**settings)
    for form in (ours.to_json(), ours.determining()):
        assert RunConfig.from_json(json.loads(json.dumps(form))) == ours


def test_a_config_and_a_studys_run_have_one_id():
    cell = Cell(
        Environment("HybridShoot"), "hybrid", "dqn", "vdn", 64, 4, {"learning_rate": 1, "bins": 11},
        normalization={"normalize_obs": True},
    )  # fmt: skip
    ours = RunConfig.of(
        "dqn", "HybridShoot", factorization="vdn", total_timesteps=64, num_envs=4,
        learning_rate=1.0, bins=11, view="hybrid", normalize_obs=True,
    )  # fmt: skip
    run = cell.run(3)
    assert ours.run_id(3) == run.id
    assert ours.run_id(4) != run.id
    assert run.config == ours
    plain = ours.replace(normalize_obs=False)
    assert "normalize_obs" not in plain.determining()
    assert plain.run_id(3) == dataclasses.replace(run, more={}).id


def test_the_signature_of_an_agent_shows_them():
    told = inspect.signature(hw.Agent).parameters
    for kind in (EnvironmentConfig, Normalization):
        assert {one.name for one in dataclasses.fields(kind)} <= told.keys()
    assert (told["view"].default, told["normalize_obs"].default) == (None, False)
    assert list(told)[-1] == "settings"


def test_an_agent_and_a_checkpoint_are_made_of_it(tmp_path):
    tiny = {"net_arch": (8,), "n_steps": 8, "num_envs": 2, "view": "hybrid", "normalize_obs": True}
    agent = hw.Agent("ppo", "HybridShoot", seeds=2, learning_rate=(0.1, 0.2), **tiny)
    expected = config(learning_rate=(0.1, 0.2), **tiny)
    assert agent.config == expected
    agent.learn(32, progress=False).save(tmp_path / "x.zip")
    assert agent.config == expected.replace(total_timesteps=32)
    assert hw.Agent.load(tmp_path / "x.zip").config == agent.config
    assert agent.member(1).config == expected.for_member(1)


SOURCE = Path(hw.__file__).parent
OWNERS = {"training/config.py", "training/normalize.py", "training/build.py",
          "agent/state_check.py"}  # fmt: skip
"""Where settings of normalization are declared, and where somebody acts on them."""


def names_in(text):
    """All names in code: of variables, attributes, arguments and fields, not those in texts."""
    for node in ast.walk(ast.parse(text)):
        for part in ("id", "attr", "arg"):
            yield getattr(node, part, None)


def test_a_setting_is_named_where_it_is_declared_and_where_it_acts():
    """A new one needs its field and whoever acts on it: agents, studies and flags pass it on."""
    names = {one.name for one in dataclasses.fields(Normalization)}
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if names.intersection(names_in(path.read_text()))
    }
    assert found == OWNERS
