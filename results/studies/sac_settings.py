"""What should SAC be like unless told otherwise?

    headwise study run sac_settings

Three settings that the authors' package and the appendix fix: the activation (tanh), how an actor
learns its options (straight through), and how much entropy it should keep (half of the largest).
Each is tried against one other, all together: every factorization on Platform with all of the
paper's steps, `shared` and `vdn` on dependent HybridShoot with half of them, and `shared` on
CoopPush and Lander with a fifth. All else is as in the paper's sweep.
"""

from dataclasses import replace

from headwise.studies.paper.plans.paper import (
    FACTORIZATIONS,
    cells,
    smaller,
    with_budgets,
    with_hyperparameters,
)
from headwise.study import Study

PART = {"platform": 1, "shoot-dep": 2, "push": 5, "lander": 5}
"""What the steps of the paper's sweep are divided by."""


def chosen(study: Study) -> Study:
    """Every factorization of SAC where steps are few, the most promising elsewhere."""
    study = study.without(algorithm=("dqn", "ppo")).without(environment="shoot-indep")
    study = study.without(environment=("push", "lander"), view="discrete")
    for environment, kept in (
        ("shoot-dep", ("shared", "vdn")),
        ("push", ("shared",)),
        ("lander", ("shared",)),
    ):
        rest = tuple(name for name in FACTORIZATIONS if name not in kept)
        study = study.without(environment=environment, factorization=rest)
    return study


def varied(study: Study) -> Study:
    """The cells with every value of each setting that means something to them."""
    for name, values, where in (
        ("activation", ("tanh", "relu"), {}),
        (
            "actor_gradient",
            ("straight_through", "counterfactual"),
            {"factorization": "shared", "view": ("discrete", "hybrid")},
        ),
        ("target_entropy", (0.5, 0.2), {"view": ("discrete", "hybrid")}),
    ):
        first, second = (
            study.change(settings={name: value}, labels={name: f"{value}"}, **where)
            for value in values
        )
        pairs = zip(first.cells, second.cells, strict=True)
        study = first.adding(*(other for one, other in pairs if one != other))
    return study


def make(seeds: int = 3, smoke: bool = False) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    name = "sac_settings" + ("-smoke" if smoke else "")
    study = with_budgets(with_hyperparameters(cells(name, seeds)), equal_budget=False)
    study = varied(chosen(smaller(study).with_seeds(1) if smoke else study))
    if not smoke:
        study = replace(
            study,
            cells=tuple(
                replace(cell, total_timesteps=cell.total_timesteps // PART[cell.environment.label])
                for cell in study.cells
            ),
        )
    return replace(study, about="Which settings does SAC learn with wherever it is tried?")
