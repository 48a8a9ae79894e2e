"""How much of the gain of factored critics in PPO is a difference in lambda?

    headwise study run lambda_sweep

The baseline of the published study ran with lambda 1 and its mixers with 0.95. Here every critic
gets every lambda. Lambda is a setting of each member, so a critic's runs of all lambdas and seeds
can train in one population.
"""

from headwise.studies.paper.plans._decoupler_cells import ppo_cell
from headwise.studies.paper.plans._decoupler_presets import Estimator, Preset
from headwise.study import Study

LAMBDAS = (0.0, 0.5, 0.9, 0.95, 1.0)
CELLS: tuple[tuple[str, Estimator], ...] = (
    ("shared", "uniform"),
    ("vdn", "uniform"),
    ("vdn", "range"),
    ("qplex", "grad"),
)


def make(preset: Preset = "sound", seeds: int = 8, smoke: bool = False) -> Study:
    """The study; `smoke` is the same with tiny budgets and one seed."""
    return Study(
        name="lambda_sweep" + ("-smoke" if smoke else ""),
        cells=tuple(
            ppo_cell(preset, *cell, smoke, {"lambda": f"{gae_lambda:g}"}, gae_lambda=gae_lambda)
            for cell in CELLS
            for gae_lambda in LAMBDAS
        ),
        seeds=tuple(range(1 if smoke else seeds)),
        thresholds=(50.0,),
        about="At equal lambda, what is left of the gain of factored critics?",
    )
