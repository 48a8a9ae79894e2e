"""What should a branching critic be regressed on? Section 5.2 and Equation 4.

    headwise study run critic_target

The lambda-return, as in the authors' package and by default; the paper's `r + gamma V(s')`; and
`r + gamma Q(s', a')`, which the paper rejects for its variance. On ContextualDecoupler with the
critics of PPO that branch, all else alike.
"""

from headwise.studies.paper.plans._decoupler_cells import ppo_cell
from headwise.studies.paper.plans._decoupler_presets import Estimator, Preset
from headwise.study import Study

TARGETS = ("lambda", "one_step", "one_step_q")
CELLS: tuple[tuple[str, Estimator], ...] = (("vdn", "range"), ("qplex", "grad"))


def make(preset: Preset = "sound", seeds: int = 16, smoke: bool = False) -> Study:
    """The study; `smoke` is the same with tiny budgets and one seed."""
    return Study(
        name="critic_target" + ("-smoke" if smoke else ""),
        cells=tuple(
            ppo_cell(preset, *cell, smoke, {"target": target}, critic_target=target)
            for cell in CELLS
            for target in TARGETS
        ),
        seeds=tuple(range(1 if smoke else seeds)),
        thresholds=(50.0,),
        about="Is a target of V alone better than one with Q(s', a')?",
    )
