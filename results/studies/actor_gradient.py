"""How should the actor of SAC `shared` learn its options?

    headwise study run actor_gradient

The paper's straight-through gradient relaxes options, ever less: the authors' package stops at a
softness of 0.01. Beside it: the same gradient that stays softer, and the counterfactual one, which
asks the critics for every option. HybridShoot in its dependent mode, where SAC over numbers alone
reaches the best there is; half of the steps of the paper's sweep, all else as there.
"""

from dataclasses import replace
from typing import Any

from headwise.studies.paper.plans.paper import cells, smaller, with_budgets, with_hyperparameters
from headwise.study import Study

GRADIENTS: dict[str, dict[str, Any]] = {
    "straight-through": {},
    "straight-through, softer": {"gumbel_floor": 0.5},
    "counterfactual": {"actor_gradient": "counterfactual"},
}


def make(total_timesteps: int = 400_000, seeds: int = 3, smoke: bool = False) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    name = "actor_gradient" + ("-smoke" if smoke else "")
    study = with_budgets(with_hyperparameters(cells(name, seeds)), equal_budget=False)
    study = smaller(study).with_seeds(1) if smoke else study.change(total_timesteps=total_timesteps)
    study = study.without(algorithm=("dqn", "ppo")).without(view="continuous")
    study = study.without(environment=("push", "shoot-indep", "lander", "platform"))
    study = study.without(factorization=("independent", "vdn", "ar", "joint"))
    variants = [
        study.change(settings=settings, labels={"gradient": name})
        for name, settings in GRADIENTS.items()
    ]
    return replace(
        study,
        cells=tuple(cell for variant in variants for cell in variant.cells),
        about="Does SAC learn options once it is told what each of them is worth?",
    )
