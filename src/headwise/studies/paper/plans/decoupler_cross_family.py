"""ContextualDecoupler across families, with the critics of the paper's Figure 2.

    headwise study run decoupler_cross_family

PPO and DQN with shared-nomix, VDN and QPLEX critics; SAC as SAC-Concat (`shared`), as SAC-BDQ
(`vdn`) and with its advantages in a mixer (`qplex`), which the paper's text has and its figure has
not. 5 seeds, 100,000 steps. The presets differ in PPO alone, so the other families run once.

Three cells are not the paper's: SAC-Concat with another activation, with an actor that learns from
the critics' value of every option, and with what Headwise does unless told otherwise, at the same
target entropy. The label `change` sets them apart.
"""

from dataclasses import replace
from typing import Any

from headwise.algorithms.dqn import DQN
from headwise.algorithms.sac import SAC
from headwise.studies.paper.plans._decoupler_cells import SMOKE_ENVS, SMOKE_STEPS, STEPS, ppo_cell
from headwise.studies.paper.plans._decoupler_presets import (
    Estimator,
    Preset,
    decoupler_factorization,
)
from headwise.study import Cell, Study

OFF_POLICY: dict[str, Any] = {
    "net_arch": (64, 64),
    "learning_rate": 1e-3,
    "gamma": 0.99,
    "buffer_size": 50_000,
    "batch_size": 256,
    "learning_starts": 1000,
    "updates_per_step": 1 / 16,
}
"""As the authors' runner had it: an update for each step of its 16 environments."""
PPO_CELLS: tuple[tuple[str, Estimator], ...] = (
    ("shared", "uniform"),
    ("vdn", "range"),
    ("qplex", "grad"),
)
SAC_SETTINGS: dict[str, Any] = {
    **OFF_POLICY,
    "target_entropy": 0.1,
    "entropy_bonus": "whole",
    "actor_gradient": "straight_through",
    "activation": "tanh",
}
OTHER_CELLS: tuple[tuple[DQN | SAC, tuple[str, ...], str], ...] = (
    (DQN(**OFF_POLICY, exploration_final_eps=0.1), ("shared", "vdn", "qplex"), ""),
    (SAC(**SAC_SETTINGS), ("shared", "vdn", "qplex"), ""),
    (SAC(**{**SAC_SETTINGS, "activation": "relu"}), ("shared",), "relu"),
    (SAC(**{**SAC_SETTINGS, "actor_gradient": "counterfactual"}), ("shared",), "counterfactual"),
    (SAC(**OFF_POLICY, target_entropy=0.1), ("shared",), "defaults"),
)
"""A config, its critics, and how it departs from the paper."""


def make(
    presets: tuple[Preset, ...] = ("sound", "as_published"), seeds: int = 5, smoke: bool = False
) -> Study:
    """The study; `smoke` is the same with tiny budgets and one seed."""
    cells = [ppo_cell(preset, *cell, smoke) for preset in presets for cell in PPO_CELLS]
    for config, critics, change in OTHER_CELLS:
        if smoke:
            config = replace(config, learning_starts=64, batch_size=32)
        cells += [
            Cell.of(
                "ContextualDecoupler",
                config,
                decoupler_factorization("sound", critic),
                view="discrete",
                total_timesteps=SMOKE_STEPS if smoke else STEPS,
                num_envs=SMOKE_ENVS if smoke else 16,
                labels={
                    "critic": "nomix" if critic == "shared" else critic,
                    **({"change": change} if change else {}),
                },
            )
            for critic in critics
        ]
    return Study(
        name="decoupler_cross_family" + ("-smoke" if smoke else ""),
        cells=tuple(cells),
        seeds=tuple(range(1 if smoke else seeds)),
        thresholds=(50.0,),
        about="Does a factored critic help every family of algorithms, or PPO alone?",
    )
