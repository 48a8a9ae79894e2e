"""Settings of the published Contextual-Decoupler study, and the sound ones beside them.

`sound` treats every variant alike: one lambda, one value loss, one way to normalize and clip, equal
critics. `as_published` is what the authors' package did, where the baseline without mixing ran with
lambda 1 and a clipped value while the mixers did not; each difference is a named setting.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from headwise.algorithms.base import AlgorithmConfig, algorithms
from headwise.factorizations import Factorization, factorizations
from headwise.factorizations.qplex import QPLEX

Preset: TypeAlias = Literal["sound", "as_published"]
Estimator: TypeAlias = Literal["uniform", "range", "grad"]

_STUDY: dict[str, Any] = {
    "learning_rate": 1e-3,
    "gamma": 0.99,
    "net_arch": (64, 64),
    "n_steps": 128,
    "batch_size": 128,
    "n_epochs": 4,
    "ent_coef": 0.05,
    "anneal_share": 40 / 48,
    "inspect": "decoupler",
}
_PUBLISHED: dict[str, Any] = {"policy_gain": 2.0**0.5}
_PUBLISHED_PLAIN: dict[str, Any] = {
    "gae_lambda": 1.0,
    "clip_range_vf": 0.5,
    "vf_coef": 0.25,
    "normalize_advantage": "batch",
    "ratio": "ranges_joint",
    "range_entropy": "mean",
    "critic_activation": "relu",
    "branch_width": 0,
}
_PUBLISHED_MIXED: dict[str, Any] = {
    "kl_coef": 0.1,
    "kl_target": 0.1,
    "center_advantage": "batch",
    "critic_orthogonal": False,
    # The package's mixers have a critic as wide as its default mixer, whatever the policy's width.
    "critic_net_arch": (128, 128),
}


def published_ppo(factorization: str) -> dict[str, Any]:
    """How the authors' package treats PPO with a factorization, where it differs from ours."""
    branches = factorization in ("vdn", "qplex")
    settings = _PUBLISHED | (_PUBLISHED_MIXED if branches else _PUBLISHED_PLAIN)
    return settings | ({"branch_width": 128} if factorization == "qplex" else {})


def decoupler_ppo(
    preset: Preset, factorization: str, estimator: Estimator = "uniform"
) -> AlgorithmConfig:
    """PPO for a cell of the decoupler study: a factorization and, if it branches, an estimator."""
    settings = dict(_STUDY)
    branches = factorization in ("vdn", "qplex")
    if branches:
        settings["importance"] = estimator
    if preset == "as_published":
        settings |= published_ppo(factorization)
        if factorization == "qplex" and estimator == "range":
            settings["importance"] = "range_slope"
    return algorithms.get("ppo")(**settings)


def decoupler_factorization(preset: Preset, factorization: str) -> Factorization:
    """The factorization of a cell, with the mixer as wide as the preset has it."""
    if factorization == QPLEX.name:
        return QPLEX(mixer_width=128 if preset == "as_published" else 64)
    return factorizations.get(factorization)()
