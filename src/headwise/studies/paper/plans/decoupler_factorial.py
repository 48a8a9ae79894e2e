"""Critic structure times importance estimator in PPO, on ContextualDecoupler: Tables 3 and 4.

    headwise study run decoupler_factorial

Both presets: `sound` treats every variant alike, `as_published` is what the authors' package did
(`_decoupler_presets` tells the differences). 16 seeds, 100,000 steps, 48 updates.
"""

from headwise.studies.paper.plans._decoupler_cells import ppo_cell
from headwise.studies.paper.plans._decoupler_presets import Estimator, Preset
from headwise.study import Study

CELLS: tuple[tuple[str, Estimator], ...] = (
    ("shared", "uniform"),
    ("vdn", "uniform"),
    ("vdn", "grad"),
    ("vdn", "range"),
    ("qplex", "uniform"),
    ("qplex", "grad"),
    ("qplex", "range"),
)
"""Critic and estimator; a shared critic has one advantage for all heads, so nothing to weight."""


def make(
    presets: tuple[Preset, ...] = ("sound", "as_published"), seeds: int = 16, smoke: bool = False
) -> Study:
    """The study; `smoke` is the same with tiny budgets and two seeds."""
    return Study(
        name="decoupler_factorial" + ("-smoke" if smoke else ""),
        cells=tuple(ppo_cell(preset, *cell, smoke) for preset in presets for cell in CELLS),
        seeds=tuple(range(2 if smoke else seeds)),
        thresholds=(50.0,),
        about="What do a factored critic and importance-weighted credit each contribute to PPO?",
    )
