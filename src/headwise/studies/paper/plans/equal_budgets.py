"""Which action type is best when all have equally many steps? Figure 6.

    headwise study run equal_budgets

The sweep gives the hybrid view more steps than others, and SAC and DQN fewer than PPO. Here the 44
cells of Platform have 200,000 each, with all else as in the sweep; `headwise study run paper --args
equal_budget=true` has the other environments, too.
"""

from dataclasses import replace

from headwise.studies.paper.plans.paper import cells, smaller, with_budgets, with_hyperparameters
from headwise.study import Study


def make(seeds: int = 3, smoke: bool = False) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    name = "equal_budgets" + ("-smoke" if smoke else "")
    study = with_budgets(with_hyperparameters(cells(name, seeds)), equal_budget=True)
    study = study.without(environment=("push", "lander", "shoot-dep", "shoot-indep"))
    study = smaller(study).with_seeds(1) if smoke else study
    return replace(study, about="Which action type is best at equal steps?")
