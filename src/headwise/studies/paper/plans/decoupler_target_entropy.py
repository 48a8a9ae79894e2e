"""Is SAC sensitive to the entropy that is asked of it? Section 7.1 and Figure 2's caption.

    headwise study run decoupler_target_entropy

SAC-Concat (`shared`), SAC-BDQ (`vdn`) and SAC with a mixer on ContextualDecoupler, each asked for
several fractions of the largest entropy; all else as in `decoupler_cross_family`. The fraction is a
setting of each member, so a factorization's runs can train in one population.
"""

from dataclasses import replace

from headwise.algorithms.sac import SAC
from headwise.studies.paper.plans._decoupler_cells import SMOKE_ENVS, SMOKE_STEPS, STEPS
from headwise.studies.paper.plans._decoupler_presets import decoupler_factorization
from headwise.studies.paper.plans.decoupler_cross_family import SAC_SETTINGS
from headwise.study import Cell, Study

FRACTIONS = (0.5, 0.2, 0.1, 0.05, 0.02)
CRITICS = ("shared", "vdn", "qplex")


def make(seeds: int = 5, smoke: bool = False) -> Study:
    """The study; `smoke` is the same with tiny budgets and one seed."""
    config = SAC(**SAC_SETTINGS)
    if smoke:
        config = replace(config, learning_starts=64, batch_size=32)
    cells = tuple(
        Cell.of(
            "ContextualDecoupler",
            replace(config, target_entropy=fraction),
            decoupler_factorization("sound", critic),
            view="discrete",
            total_timesteps=SMOKE_STEPS if smoke else STEPS,
            num_envs=SMOKE_ENVS if smoke else 16,
            labels={"target_entropy": f"{fraction:g}"},
        )
        for critic in CRITICS
        for fraction in FRACTIONS
    )
    return Study(
        name="decoupler_target_entropy" + ("-smoke" if smoke else ""),
        cells=cells,
        seeds=tuple(range(1 if smoke else seeds)),
        thresholds=(50.0,),
        about="How much entropy may be asked of SAC on the decoupler?",
    )
