"""Does the order of auto-regressive heads matter? Section 10 leaves it open.

    headwise study run ar_order

Dependent HybridShoot of options: who is shot at first and where after it, or the other way round,
with a fifth of the sweep's steps; Platform: what to do first, or how strongly, with all of them.
`shared` is there as what has no order. All else is as in the sweep.
"""

from dataclasses import replace

from headwise.studies.paper.plans.paper import cells, smaller, with_budgets, with_hyperparameters
from headwise.study import Study

ORDERS: dict[str, dict[str, tuple[str, ...]]] = {
    "shoot-dep": {
        "select first": ("select", "aim_x", "aim_y"),
        "select last": ("aim_x", "aim_y", "select"),
    },
    "platform": {
        "kind first": ("kind", "run", "hop", "leap"),
        "kind last": ("run", "hop", "leap", "kind"),
    },
}
PART = {"shoot-dep": 5, "platform": 1}
"""What the sweep's steps are divided by."""


def make(seeds: int = 5, smoke: bool = False) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    name = "ar_order" + ("-smoke" if smoke else "")
    study = with_budgets(with_hyperparameters(cells(name, seeds)), equal_budget=False)
    study = smaller(study).with_seeds(1) if smoke else study
    study = study.without(environment=("push", "lander", "shoot-indep"))
    study = study.without(view=("hybrid", "continuous"))
    study = study.without(factorization=("independent", "vdn", "qplex", "joint"))
    if not smoke:
        parts = (
            replace(c, total_timesteps=c.total_timesteps // PART[c.environment.label])
            for c in study.cells
        )
        study = replace(study, cells=tuple(parts))
    ordered = [
        cell
        for environment, orders in ORDERS.items()
        for label, order in orders.items()
        for cell in study.change(
            environment=environment,
            factorization="ar",
            factorization_settings={"order": order},
            labels={"order": label},
        ).cells
        if cell.labels.get("order") == label
    ]
    plain = study.without(factorization="ar").change(labels={"order": "none"})
    return replace(
        plain.adding(*ordered),
        about="Does it matter which head an auto-regressive action begins with?",
    )
