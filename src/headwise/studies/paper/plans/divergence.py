"""What does a penalty on the divergence from the policy that acted do to PPO? Figure 13's caption.

    headwise study run divergence

The authors' package has it for mixers alone: it begins at 0.1 and moves until the joint divergence
of an update is 0.1. Here every critic goes without it, with that one, and with a tenth of the aim.
On ContextualDecoupler, all else alike.
"""

from typing import Any

from headwise.studies.paper.plans._decoupler_cells import ppo_cell
from headwise.studies.paper.plans._decoupler_presets import Estimator, Preset
from headwise.study import Study

PENALTIES: dict[str, dict[str, Any]] = {
    "none": {"kl_coef": 0.0},
    "to 0.1": {"kl_coef": 0.1, "kl_target": 0.1},
    "to 0.01": {"kl_coef": 0.1, "kl_target": 0.01},
}
CELLS: tuple[tuple[str, Estimator], ...] = (
    ("shared", "uniform"),
    ("vdn", "range"),
    ("qplex", "grad"),
)


def make(preset: Preset = "sound", seeds: int = 8, smoke: bool = False) -> Study:
    """The study; `smoke` is the same with tiny budgets and one seed."""
    return Study(
        name="divergence" + ("-smoke" if smoke else ""),
        cells=tuple(
            ppo_cell(preset, *cell, smoke, {"penalty": name}, **settings)
            for cell in CELLS
            for name, settings in PENALTIES.items()
        ),
        seeds=tuple(range(1 if smoke else seeds)),
        thresholds=(50.0,),
        about="Do factored critics need a penalty on divergence, and does the baseline?",
    )
