"""Can PPO-MIX learn by the weights that the paper prints? Equation 8.

    headwise study run signed_weights

Shares of the mixture with their signs, divided by their sum, which may be close to zero; by size;
and rules that see the state alone. On ContextualDecoupler with the mixing critic, all else alike.
"""

from headwise.studies.paper.plans._decoupler_cells import ppo_cell
from headwise.studies.paper.plans._decoupler_presets import Preset
from headwise.study import Study

RULES = ("uniform", "grad", "signed", "range", "range_slope", "state")


def make(preset: Preset = "sound", seeds: int = 16, smoke: bool = False) -> Study:
    """The study; `smoke` is the same with tiny budgets and one seed."""
    return Study(
        name="signed_weights" + ("-smoke" if smoke else ""),
        cells=tuple(
            ppo_cell(preset, "qplex", "uniform", smoke, {"estimator": rule}, importance=rule)
            for rule in RULES
        ),
        seeds=tuple(range(1 if smoke else seeds)),
        thresholds=(50.0,),
        about="What do signed weights do to PPO with a mixing critic?",
    )
