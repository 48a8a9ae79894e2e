"""A cell of the decoupler studies: what all of them share."""

from dataclasses import replace
from typing import Any

from headwise.studies.paper.plans._decoupler_presets import (
    Estimator,
    Preset,
    decoupler_factorization,
    decoupler_ppo,
)
from headwise.study import Cell

STEPS = 100_000
SMOKE_STEPS = 1024
SMOKE_ENVS = 8


def ppo_cell(
    preset: Preset,
    critic: str,
    estimator: Estimator,
    smoke: bool,
    labels: dict[str, str] | None = None,
    **settings: Any,
) -> Cell:
    """PPO with one of the published critics; `shared` is the paper's nomix.

    A smoke cell has four small rollouts instead of 48 large ones.
    """
    if smoke:
        settings = {**settings, "n_steps": 16, "batch_size": 64, "n_epochs": 1}
    config = replace(decoupler_ppo(preset, critic, estimator), **settings)
    return Cell.of(
        "ContextualDecoupler",
        config,
        decoupler_factorization(preset, critic),
        view="discrete",
        total_timesteps=SMOKE_STEPS if smoke else STEPS,
        num_envs=SMOKE_ENVS if smoke else 16,
        labels={
            "preset": preset,
            "critic": "nomix" if critic == "shared" else critic,
            "estimator": estimator,
            **(labels or {}),
        },
    )
