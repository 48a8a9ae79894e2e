"""Does precision decide between discrete and continuous actions? Section 4.4.

    headwise study run hit_radius

Dependent HybridShoot with a radius of 0.05, 0.1 (the paper's) and 0.2: a grid of ten by ten reaches
every target from 0.0707 on. `vdn` and `ar` with PPO in the discrete and the continuous view, with
a fifth of the sweep's steps; all else as there.
"""

from dataclasses import replace

from headwise.studies.paper.plans.paper import cells, smaller, with_budgets, with_hyperparameters
from headwise.study import Study

RADII = (0.05, 0.1, 0.2)


def make(seeds: int = 5, smoke: bool = False) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    name = "hit_radius" + ("-smoke" if smoke else "")
    study = with_budgets(with_hyperparameters(cells(name, seeds)), equal_budget=False)
    study = smaller(study).with_seeds(1) if smoke else study
    study = study.without(environment=("push", "lander", "platform", "shoot-indep"))
    study = study.without(algorithm=("dqn", "sac")).without(view="hybrid")
    study = study.without(factorization=("independent", "shared", "qplex"))
    study = study.without(factorization="joint")
    if not smoke:
        study = replace(
            study,
            cells=tuple(replace(c, total_timesteps=c.total_timesteps // 5) for c in study.cells),
        )
    variants = [
        study.change(env_settings={"hit_radius": each}, labels={"radius": f"{each:g}"})
        for each in RADII
    ]
    return replace(
        study,
        cells=tuple(cell for variant in variants for cell in variant.cells),
        about="Are options enough where a shot may miss by more?",
    )
