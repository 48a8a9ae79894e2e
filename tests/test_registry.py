from dataclasses import fields

import pytest

from headwise import Agent, ConfigError
from headwise.algorithms import algorithms
from headwise.algorithms.base import config_from
from headwise.algorithms.dqn import DQN
from headwise.algorithms.ppo import PPO
from headwise.algorithms.sac import SAC
from headwise.factorizations import factorizations
from headwise.foreign_names import CLEANRL, NOT_OFFERED, SB3
from headwise.registry import Registry


@pytest.fixture
def colours():
    registry = Registry("colour")
    registry.register("red")(1)
    registry.register("green")(2)
    return registry


def test_what_is_registered_can_be_had(colours):
    assert colours.get("red") == 1
    assert colours.names() == ["red", "green"]
    assert list(colours.items()) == [("red", 1), ("green", 2)]
    assert "red" in colours
    assert len(colours) == 2


def test_a_misspelt_name_gets_a_suggestion(colours):
    with pytest.raises(ConfigError, match=r"unknown colour; got 'gren'.*Did you mean 'green'"):
        colours.get("gren")
    with pytest.raises(ConfigError, match=r"allowed: green, red\.$"):
        colours.get("zzz")
    with pytest.raises(ConfigError, match="unknown colour"):
        colours.get(["red"])


def test_capital_letters_are_no_mistake(colours):
    assert colours.get("RED") == 1
    colours.register("Green")(3)
    assert colours.get("Green") == 3
    with pytest.raises(ConfigError, match="Did you mean"):  # one of two
        colours.get("GREEN")
    assert Agent("PPO", "HybridShoot", factorization="VDN", hidden=(8,)).config.title == "ppo vdn"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("a2c", "ppo"), ("A2C", "ppo"), ("td3", "sac"), ("QR-DQN", "dqn"), ("rainbow", "dqn")],
)
def test_what_others_offer_is_told_what_is_nearest_and_not_what_is_spelt_alike(theirs, ours):
    words = f"got '{theirs}'. {theirs} is not offered; '{ours}' is the nearest. Allowed: dqn, ppo, "
    with pytest.raises(ConfigError, match=words):
        algorithms.get(theirs)
    with pytest.raises(ConfigError, match="qmix is not offered; 'qplex' is the nearest"):
        factorizations.get("qmix")


def test_every_neighbour_is_one_of_ours_and_no_name_of_another_is():
    assert set(NOT_OFFERED.values()) <= {*algorithms.names(), *factorizations.names()}
    assert not set(NOT_OFFERED) & {*algorithms.names(), *factorizations.names()}


@pytest.mark.parametrize(
    ("theirs", "kind", "ours"),
    [
        ("learning_rate", PPO, "lr"),
        ("n_steps", PPO, "rollout"),
        ("n_steps", DQN, "n_step"),
        ("batch_size", PPO, "minibatch"),
        ("net_arch", SAC, "hidden"),
        ("buffer_size", DQN, "replay"),
        ("exploration_fraction", DQN, "epsilon_share"),
        ("clip_range", PPO, "clip"),
        ("vf_coef", PPO, "value_coef"),
        ("learning_starts", DQN, "warmup"),
        ("ent_coef", PPO, "entropy_coef"),
        ("ent_coef", SAC, "first_temperature"),
        ("clip_coef", PPO, "clip"),
    ],
)
def test_a_name_of_another_library_gets_ours(theirs, kind, ours):
    library = "CleanRL" if theirs == "clip_coef" else "Stable-Baselines3"
    with pytest.raises(ConfigError, match=f"Did you mean '{ours}', which {library} calls {theirs}"):
        config_from(kind, {theirs: 1})


def test_a_seed_is_not_a_number_of_seeds():
    with pytest.raises(ConfigError, match=r"Did you mean 'seeds'.*\[3\] is the seed 3 alone"):
        Agent("ppo", "HybridShoot", seed=3)


@pytest.fixture(scope="module")
def agent():
    return Agent("ppo", "HybridShoot", hidden=(8,))


@pytest.mark.parametrize(
    ("call", "theirs", "ours"),
    [
        ("learn", "total_timesteps", "steps"),
        ("learn", "callback", "callbacks"),
        ("learn", "progress_bar", "progress"),
        ("learn", "verbose", "progress"),
        ("learn", "log_interval", "log_every"),
        ("learn", "tensorboard_log", "sinks"),
        ("evaluate", "n_eval_episodes", "episodes"),
    ],
)
def test_an_argument_of_another_library_gets_ours(call, theirs, ours, agent):
    words = f"unknown argument of {call}; .*Did you mean '{ours}', which Stable-Baselines3 calls"
    with pytest.raises(ConfigError, match=words):
        getattr(agent, call)(**{theirs: 1})


def test_a_misspelt_argument_gets_a_suggestion(agent):
    with pytest.raises(
        ConfigError, match=r"got 'episode'\. Did you mean 'episodes'\? Allowed: .*max_steps"
    ):
        agent.evaluate(episode=3)
    with pytest.raises(ConfigError, match="learn goes on where it is called again"):
        agent.learn(100, reset_num_timesteps=False)


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ("verbose", r"unless progress=False\. Allowed: "),
        ("tensorboard_log", r"learn\(\.\.\., sinks=\[hw.TensorBoardSink"),
        ("total_timesteps", r"Say it to learn: learn\(100_000\)"),
        ("steps", r"Say it to learn: learn\(100_000\)"),
    ],
)
def test_what_learn_is_told_is_not_told_to_an_agent(theirs, words):
    with pytest.raises(ConfigError, match=words):
        Agent("ppo", "HybridShoot", **{theirs: 1})


@pytest.mark.parametrize("row", [*SB3, *CLEANRL], ids=lambda row: f"{row.theirs} {row.ours}")
def test_every_name_elsewhere_stands_for_something_that_is_here(row):
    run = {"steps", "env", "seeds", "first_seed", "num_envs", "device", "progress", "log"}
    run |= {"callbacks", "log_every", "sinks", "episodes"}
    settings = {field.name for kind in (PPO, DQN, SAC) for field in fields(kind)}
    assert row.ours in settings | run
    assert row.theirs not in settings or row.theirs == "batch_size"  # which PPO does not have
    assert row.note == "" or row.note.endswith(".")


def test_a_name_is_given_once(colours):
    with pytest.raises(ConfigError, match="'red' is registered twice"):
        colours.register("red")(3)


def test_what_is_defined_again_takes_the_place_of_what_it_was():
    registry = Registry("colour")
    found = []
    for _ in range(2):  # a cell of a notebook, run twice

        @registry.register("red")
        class Red:
            pass

        found.append(Red)
    assert registry.get("red") is found[1]

    class Other:
        pass

    with pytest.raises(ConfigError, match="'red' is registered twice"):
        registry.register("red")(Other)
