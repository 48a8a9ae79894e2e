"""What does it do to learning that entropy is paid for?

    headwise study run entropy_bonus
    headwise study run entropy_bonus --args target_entropy=0.2   # with less entropy asked for

SAC adds entropy to what a state is worth: at every step, for as long as an episode lasts. Here the
`whole` of it, as in the paper, against what there is `above_target`, on Platform in every
factorization, on dependent HybridShoot and on Lander, with a fifth of the paper's steps. PPO is
paid for the entropy of the Gaussians behind its numbers (0.05 in `paper`, as in the authors'
package); here 0.05, 0.01 and nothing on dependent HybridShoot, with 40 % of the steps. All else is
as in the sweep.
"""

from dataclasses import replace

from headwise.studies.paper.plans.paper import cells, smaller, with_budgets, with_hyperparameters
from headwise.study import Cell, Study

PAYS_ENTROPY = {
    ("shoot-dep", "discrete", "vdn"),
    ("lander", "hybrid", "shared"),
    ("lander", "continuous", "shared"),
}
"""Environment, view and factorization of SAC beside those on Platform."""
PAYS_WIDTH = ("shoot-dep", "continuous", "shared")
"""Of PPO."""


def chosen(cell: Cell) -> bool:
    """Whether the cell is in this study."""
    where = (cell.environment.label, cell.view, cell.factorization)
    if cell.algorithm == "sac":
        on_platform = cell.environment.label == "platform" and cell.view != "continuous"
        return on_platform or where in PAYS_ENTROPY
    return cell.algorithm == "ppo" and where == PAYS_WIDTH


def make(seeds: int = 3, target_entropy: float = 0.5, smoke: bool = False) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    name = "entropy_bonus" + ("-smoke" if smoke else "")
    study = with_budgets(with_hyperparameters(cells(name, seeds)), equal_budget=False)
    share = {"sac": 0.2, "ppo": 0.4}
    if smoke:
        study, share = smaller(study).with_seeds(1), dict.fromkeys(share, 1.0)
    study = replace(
        study,
        cells=tuple(
            replace(cell, total_timesteps=round(cell.total_timesteps * share[cell.algorithm]))
            for cell in study.cells
            if chosen(cell)
        ),
        about="What does it do to learning that entropy is paid for?",
    )
    sac, ppo = study.without(algorithm="ppo"), study.without(algorithm="sac")
    variants = [
        *(
            sac.change(
                settings={"entropy_bonus": each, "target_entropy": target_entropy},
                labels={"bonus": each},
            )
            for each in ("whole", "above_target")
        ),
        *(
            ppo.change(settings={"ent_coef": each}, labels={"bonus": f"{each:g}"})
            for each in (0.05, 0.01, 0.0)
        ),
    ]
    return replace(study, cells=tuple(cell for variant in variants for cell in variant.cells))
