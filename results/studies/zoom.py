"""Does aiming level by level cure what plain views leave undone?

    headwise study run zoom

Independent HybridShoot, where one number aims along a curve, in the zoom view: 3 levels of 5 bins,
and 4 of 4, which are the quadrants that the curve is made of. PPO and DQN, all else as in the
paper's sweep of the discrete view, with its steps or a part of them (`--args part=8`: an eighth).
"""

from dataclasses import replace

from headwise.studies.paper.plans.paper import cells, smaller, with_budgets, with_hyperparameters
from headwise.study import Study

GRIDS = ((3, 5), (4, 4))


def make(part: int = 1, seeds: int = 5, smoke: bool = False) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    name = "zoom" + ("-smoke" if smoke else f"-{part}" if part != 1 else "")
    study = with_budgets(with_hyperparameters(cells(name, seeds)), equal_budget=False)
    study = smaller(study).with_seeds(1) if smoke else study
    study = study.without(environment=("push", "lander", "platform", "shoot-dep"))
    study = study.without(algorithm="sac").without(view=("hybrid", "continuous"))
    study = study.without(factorization=("independent", "qplex", "joint"))
    found = tuple(
        replace(c, view="zoom", total_timesteps=max(c.total_timesteps // part, 64))
        for c in study.cells
    )
    variants = [
        replace(study, cells=found).change(
            env_settings={"zoom_levels": levels, "zoom_bins": bins},
            labels={"zoom": f"{levels} of {bins}"},
        )
        for levels, bins in GRIDS
    ]
    return replace(
        study,
        cells=tuple(cell for variant in variants for cell in variant.cells),
        about="Does aiming level by level cure what plain views leave undone?",
    )
