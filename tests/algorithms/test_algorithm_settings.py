"""Settings that make no sense are refused before anything runs."""

import dataclasses
import math
import typing

import pytest
import torch

from headwise import ConfigError
from headwise.algorithms import algorithms
from headwise.algorithms.base import config_from
from headwise.algorithms.dqn import DQN
from headwise.algorithms.ppo import PPO
from headwise.algorithms.sac import SAC
from headwise.envs.native.vec_env import NativeVecEnv
from headwise.training.build import make_loop
from headwise.training.config import RunConfig


def fields_of(kind, wanted):
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        options = typing.get_args(hints[field.name]) or (hints[field.name],)
        if wanted(hints[field.name], options):
            yield field.name


NUMBERS = [
    (name, field)
    for name, kind in algorithms.items()
    for field in fields_of(kind, lambda hint, options: float in options)
]
WORDS = [
    (name, field)
    for name, kind in algorithms.items()
    for field in fields_of(kind, lambda hint, _: typing.get_origin(hint) is typing.Literal)
]
COUNTS = [
    (name, field)
    for name, kind in algorithms.items()
    for field in fields_of(kind, lambda hint, _: hint is int)
]


@pytest.mark.parametrize(("name", "field"), NUMBERS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "fast", True])
def test_a_number_must_be_one_and_finite(name, field, bad):
    with pytest.raises(ConfigError, match=f"{name} setting '{field}' (is out of range|must be)"):
        algorithms.get(name)(**{field: bad})


@pytest.mark.parametrize(("name", "field"), WORDS)
def test_a_word_must_be_among_those_allowed(name, field):
    with pytest.raises(
        ConfigError, match=f"unknown value of {name} setting '{field}'; got 'nonsense'"
    ):
        algorithms.get(name)(**{field: "nonsense"})


@pytest.mark.parametrize(("name", "field"), COUNTS)
@pytest.mark.parametrize("bad", [-1, 2.5, True, "many", None])
def test_a_count_must_be_a_whole_number(name, field, bad):
    with pytest.raises(ConfigError, match=f"{name} setting '{field}' must be a count"):
        algorithms.get(name)(**{field: bad})


@pytest.mark.parametrize("field", ["dueling", "double_q"])
@pytest.mark.parametrize("bad", ["no", 0, None])
def test_a_switch_is_on_or_off(field, bad):
    with pytest.raises(
        ConfigError, match=f"dqn setting '{field}' must be a yes or no.*True, False"
    ):
        DQN(**{field: bad})


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (PPO, {"max_grad_norm": 0.0}, "'max_grad_norm' is out of range; got 0.0"),
        (PPO, {"clip_range_vf": -0.5}, "'clip_range_vf' is out of range"),
        (PPO, {"kl_target": 0.0}, "'kl_target' is out of range"),
        (PPO, {"batch_size": 0}, "'batch_size' must be a count"),
        (DQN, {"munchausen": 0.9}, "'munchausen' needs a temperature"),
        (DQN, {"tau": 1.5}, "'tau' is out of range"),
        (SAC, {"gumbel_floor": 0.0}, "'gumbel_floor' is out of range"),
        (SAC, {"ent_coef": "auto_0.0"}, "'ent_coef' must be a weight of entropy; got auto_0.0"),
    ],
)
def test_numbers_out_of_range(kind, settings, message):
    with pytest.raises(ConfigError, match=message):
        kind(**settings)


def test_a_misspelt_setting_gets_a_suggestion():
    with pytest.raises(ConfigError, match=r"unknown ppo setting; got 'gae_lamda'.*'gae_lambda'"):
        config_from(PPO, {"gae_lamda": 0.9})
    assert config_from(PPO, {"learning_rate": [1e-3, 2e-3]}).learning_rate == (1e-3, 2e-3)


@pytest.mark.parametrize("factorization", ["shared", "vdn", "qplex", "independent"])
def test_one_ratio_for_all_ranges_goes_with_every_critic(factorization):
    env = NativeVecEnv("HybridShoot", (0, 1), 4, view="continuous")
    config = PPO(net_arch=(8,), n_steps=8, batch_size=16, n_epochs=1, ratio="ranges_joint")
    plan = RunConfig.of(config, factorization=factorization, total_timesteps=64)
    loop = make_loop(env, plan, (0, 1))
    loop.run(64)
    assert torch.isfinite(loop.metrics["train/policy_gradient_loss"]).all()
