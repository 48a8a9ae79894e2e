"""The published study's settings, each deviation from the sound ones by name."""

import dataclasses
import itertools

import pytest
import torch

from headwise.envs.native.vec_env import NativeVecEnv
from headwise.studies.paper.plans._decoupler_presets import decoupler_factorization, decoupler_ppo
from headwise.training.build import make_loop
from headwise.training.config import RunConfig

CELLS = [("shared", "uniform"), *itertools.product(("vdn", "qplex"), ("uniform", "range", "grad"))]


def settings(preset, factorization, estimator="uniform"):
    return dataclasses.asdict(decoupler_ppo(preset, factorization, estimator))


def differences(ours, theirs):
    return {name: (ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]}


def test_the_study_itself():
    found = settings("sound", "vdn", "range")
    expected = {
        "learning_rate": 1e-3, "gamma": 0.99, "net_arch": (64, 64), "n_steps": 128,
        "batch_size": 128, "n_epochs": 4, "clip_range": 0.2, "gae_lambda": 0.95, "ent_coef": 0.05,
        "importance": "range",
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    assert found["anneal_share"] * 48 == pytest.approx(40)


def test_sound_treats_all_variants_alike():
    plain = settings("sound", "shared")
    for factorization in ("vdn", "qplex"):
        for estimator in ("uniform", "range", "grad"):
            other = settings("sound", factorization, estimator)
            assert set(differences(plain, other)) <= {"importance"}


def test_as_published_the_baseline_ran_with_another_lambda_and_a_clipped_value():
    published = settings("as_published", "shared")
    changed = differences(settings("sound", "shared"), published)
    assert changed["gae_lambda"] == (0.95, 1.0)
    assert changed["clip_range_vf"] == (None, 0.5)
    for factorization in ("vdn", "qplex"):
        mixed = settings("as_published", factorization)
        assert (mixed["gae_lambda"], mixed["clip_range_vf"]) == (0.95, None)
        assert mixed["kl_coef"] == 0.1


def test_the_mixers_width():
    assert decoupler_factorization("sound", "qplex").mixer_width == 64
    assert decoupler_factorization("as_published", "qplex").mixer_width == 128
    assert decoupler_factorization("sound", "shared").name == "shared"


@pytest.mark.parametrize("preset", ["sound", "as_published"])
@pytest.mark.parametrize(("factorization", "estimator"), CELLS)
def test_every_cell_runs(preset, factorization, estimator):
    config = dataclasses.replace(
        decoupler_ppo(preset, factorization, estimator), n_steps=16, batch_size=32, n_epochs=1
    )
    env = NativeVecEnv("ContextualDecoupler", (0, 1), 4)
    kind = decoupler_factorization(preset, factorization)
    plan = RunConfig.of(config, factorization=kind, total_timesteps=256)
    loop = make_loop(env, plan, (0, 1))
    loop.run(128)
    assert loop.updates == 2
    assert all(torch.isfinite(x).all() for x in loop.metrics.values())
    assert ("credit/accuracy" in loop.metrics) == (factorization != "shared")
