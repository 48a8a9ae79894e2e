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
from headwise.upgrade import RENAMED


@pytest.fixture
def colors():
    registry = Registry("color")
    registry.register("red")(1)
    registry.register("green")(2)
    return registry


def test_what_is_registered_can_be_had(colors):
    assert colors.get("red") == 1
    assert colors.names() == ["red", "green"]
    assert list(colors.items()) == [("red", 1), ("green", 2)]
    assert "red" in colors
    assert len(colors) == 2


def test_a_misspelt_name_gets_a_suggestion(colors):
    with pytest.raises(ConfigError, match=r"unknown color; got 'gren'.*Did you mean 'green'"):
        colors.get("gren")
    with pytest.raises(ConfigError, match=r"allowed: green, red\.$"):
        colors.get("zzz")
    with pytest.raises(ConfigError, match="unknown color"):
        colors.get(["red"])


def test_capital_letters_are_no_mistake(colors):
    assert colors.get("RED") == 1
    colors.register("Green")(3)
    assert colors.get("Green") == 3
    with pytest.raises(ConfigError, match="Did you mean"):  # one of two
        colors.get("GREEN")
    assert Agent("PPO", "HybridShoot", factorization="VDN", net_arch=(8,)).config.title == "ppo vdn"


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


def test_every_neighbor_is_one_of_ours_and_no_name_of_another_is():
    assert set(NOT_OFFERED.values()) <= {*algorithms.names(), *factorizations.names()}
    assert not set(NOT_OFFERED) & {*algorithms.names(), *factorizations.names()}


@pytest.mark.parametrize(
    ("theirs", "kind", "ours"),
    [
        ("policy_kwargs", SAC, "net_arch"),
        ("activation_fn", PPO, "activation"),
        ("target_kl", PPO, "kl_target"),
        ("n_steps", DQN, "n_step"),
        ("train_freq", DQN, "updates_per_step"),
        ("gradient_steps", SAC, "updates_per_step"),
        ("target_update_interval", DQN, "tau"),
        ("clip_coef", PPO, "clip_range"),
        ("num_steps", PPO, "n_steps"),
        ("alpha", SAC, "ent_coef"),
    ],
)
def test_a_name_of_another_library_gets_ours(theirs, kind, ours):
    library = "CleanRL" if theirs in ("clip_coef", "num_steps", "alpha") else "Stable-Baselines3"
    with pytest.raises(ConfigError, match=f"Did you mean '{ours}', which {library} calls {theirs}"):
        config_from(kind, {theirs: 1})


@pytest.mark.parametrize("kind", [PPO, DQN, SAC])
def test_every_name_of_before_gets_the_one_of_today(kind):
    for before, now in (RENAMED[""] | RENAMED[kind.name]).items():
        with pytest.raises(ConfigError, match=f"got '{before}'. Write '{now}', which is what"):
            config_from(kind, {before: 1})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"lr": 0.1}, "got 'lr'. Write 'learning_rate', which is what lr is called now. Allowed"),
        ({"rollout": 4096}, "Write 'n_steps'.*rollout=4096 of 16 environments is n_steps=256"),
        ({"normalise_obs": True}, "Write 'normalize_obs'"),
        ({"normalise": "off"}, "Write 'normalize_advantage'.*'rollout', 'batch' or False"),
    ],
)
def test_so_does_an_agent(settings, words):
    with pytest.raises(ConfigError, match=words):
        Agent("ppo", "HybridShoot", **settings)


def test_a_seed_is_not_a_number_of_seeds():
    with pytest.raises(ConfigError, match=r"Did you mean 'seeds'.*\[3\] is the seed 3 alone"):
        Agent("ppo", "HybridShoot", seed=3)


@pytest.fixture(scope="module")
def agent():
    return Agent("ppo", "HybridShoot", net_arch=(8,))


@pytest.mark.parametrize(
    ("call", "theirs", "ours"),
    [
        ("learn", "callback", "callbacks"),
        ("learn", "progress_bar", "progress"),
        ("learn", "verbose", "progress"),
        ("learn", "log_interval", "log_every"),
        ("learn", "tensorboard_log", "loggers"),
        ("evaluate", "n_eval_episodes", "episodes"),
    ],
)
def test_an_argument_of_another_library_gets_ours(call, theirs, ours, agent):
    words = f"unknown argument of {call}; .*Did you mean '{ours}', which Stable-Baselines3 calls"
    with pytest.raises(ConfigError, match=words):
        getattr(agent, call)(**{theirs: 1})


def test_names_of_arguments_of_before(agent):
    for before, now in {"steps": "total_timesteps", "sinks": "loggers"}.items():
        with pytest.raises(ConfigError, match=f"got '{before}'. Write '{now}'"):
            agent.learn(**{before: 1})


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
        ("tensorboard_log", r"learn\(\.\.\., loggers=\[hw.TensorBoardLogger"),
        ("total_timesteps", r"Say it to learn: learn\(100_000\)"),
        ("steps", r"Say it to learn: learn\(100_000\)"),
    ],
)
def test_what_learn_is_told_is_not_told_to_an_agent(theirs, words):
    with pytest.raises(ConfigError, match=words):
        Agent("ppo", "HybridShoot", **{theirs: 1})


@pytest.mark.parametrize("row", [*SB3, *CLEANRL], ids=lambda row: f"{row.theirs} {row.ours}")
def test_every_name_elsewhere_stands_for_something_that_is_here(row):
    run = {"env", "seeds", "first_seed", "num_envs", "device", "progress", "log"}
    run |= {"callbacks", "log_every", "loggers", "episodes"}
    settings = {field.name for kind in (PPO, DQN, SAC) for field in fields(kind)}
    assert row.ours in settings | run
    assert row.theirs not in settings or row.theirs == "n_steps"  # which DQN does not have
    assert row.note == "" or row.note.endswith(".")


def test_a_name_is_given_once(colors):
    with pytest.raises(ConfigError, match="'red' is registered twice"):
        colors.register("red")(3)


def test_what_is_defined_again_takes_the_place_of_what_it_was():
    registry = Registry("color")
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
