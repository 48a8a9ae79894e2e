"""What `import headwise as hw` offers: all of it found by `dir`, nothing of it that is not ours."""

import inspect

import pytest

import headwise as hw
from headwise import errors
from headwise.algorithms import algorithms
from headwise.factorizations import factorizations


def test_dir_shows_what_there_is_and_nothing_else():
    assert dir(hw) == sorted(hw.__all__)
    for helper in ("os", "Any", "TYPE_CHECKING", "register_environments"):
        assert helper not in dir(hw)


@pytest.mark.parametrize("name", hw.__all__)
def test_every_public_name_is_there(name):
    assert getattr(hw, name) is not None


def test_every_name_that_comes_late_is_public():
    late = [name for names in hw._LATE.values() for name in names]
    assert set(late) <= set(hw.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'PPOO'"):
        _ = hw.PPOO


def test_every_error_and_every_config_has_a_public_home():
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        assert getattr(hw, name) is kind
    for _, kind in [*algorithms.items(), *factorizations.items()]:
        if kind.__module__.startswith("headwise."):
            assert getattr(hw, kind.__name__) is kind


def test_an_agent_takes_its_settings_as_dataclasses():
    agent = hw.Agent(
        hw.PPO(learning_rate=1e-3, net_arch=(8,)), "HybridShoot", factorization=hw.VDN(), num_envs=1
    )
    assert agent.config.algorithm.learning_rate == 1e-3
    assert agent.config.factorization == hw.VDN()


def test_a_study_is_made_of_public_names():
    places = [hw.Environment("HybridShoot", settings={"num_targets": 4})]
    study = hw.Study.grid(
        "x",
        environments=places,
        algorithms=["ppo"],
        factorizations=["vdn"],
        total_timesteps=64,
        seeds=2,
    )
    assert isinstance(study.cells[0], hw.Cell)
    assert study.runs()[0].env_settings == {"num_targets": 4}
