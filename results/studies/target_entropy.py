"""How much entropy should SAC ask of its options?

    headwise study run target_entropy

The paper's SAC asks for half of the largest entropy, finds it too much for HybridShoot's 300
options, and advises 0.1 or 0.2 there. Here each fraction is tried where options matter most, with
the steps of the paper's sweep; all else is as there. The fraction is a setting of each member, so a
cell's runs of all fractions and seeds can train in one population.
"""

from dataclasses import replace

from headwise.studies.paper.plans.paper import cells, smaller, with_budgets, with_hyperparameters
from headwise.study import Study

FRACTIONS = (0.5, 0.2, 0.1)


def make(seeds: int = 3, smoke: bool = False) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    name = "target_entropy" + ("-smoke" if smoke else "")
    study = with_budgets(with_hyperparameters(cells(name, seeds)), equal_budget=False)
    if smoke:
        study = smaller(study).with_seeds(1)
    study = study.without(algorithm=("dqn", "ppo")).without(environment=("push", "lander"))
    study = study.without(view="continuous").without(factorization=("independent", "ar"))
    variants = [
        study.change(settings={"target_entropy": each}, labels={"target_entropy": f"{each:g}"})
        for each in FRACTIONS
    ]
    return replace(
        study,
        cells=tuple(cell for variant in variants for cell in variant.cells),
        about="Does SAC learn options once it is asked for less entropy?",
    )
