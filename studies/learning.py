"""Does everything learn? Cells of the paper's sweep at a fraction of its budget.

    headwise study run learning                          # PPO, one tenth of the steps
    headwise study run learning --args family=off_policy # DQN and SAC, one fifth
    headwise study run learning --args family=sac        # SAC with our own settings, one fifth

PPO: every factorization on CoopPush, Platform and dependent HybridShoot. DQN and SAC: all 28 cells
on Platform, and on the other environments one of each in every view (DQN vdn, SAC shared).

SAC for itself: the same cells, with what Headwise does unless told otherwise where that is not what
the paper has. `--args activation=relu` is the same with another activation.
"""

from dataclasses import replace
from typing import Literal

from headwise.algorithms.sac import SAC
from headwise.nets import Activation
from headwise.study import Study
from paper import FACTORIZATIONS, cells, smaller, with_budgets, with_hyperparameters

OTHERS = ("push", "shoot-dep", "shoot-indep", "lander")


def ppo(study: Study) -> Study:
    """The cells of PPO."""
    return study.without(algorithm=("dqn", "sac")).without(environment=("lander", "shoot-indep"))


def off_policy(study: Study) -> Study:
    """The cells of DQN and SAC."""
    study = study.without(algorithm="ppo")
    for algorithm, kept in (("dqn", "vdn"), ("sac", "shared")):
        rest = tuple(name for name in FACTORIZATIONS if name != kept)
        study = study.without(environment=OTHERS, algorithm=algorithm, factorization=rest)
    return study


def sac(study: Study, activation: Activation) -> Study:
    """The cells of SAC, with our own settings."""
    ours = SAC(activation=activation)
    names = ("target_entropy", "entropy_bonus", "actor_gradient", "activation")
    study = off_policy(study).without(algorithm="dqn")
    return study.change(settings={name: getattr(ours, name) for name in names})


def make(
    family: Literal["ppo", "off_policy", "sac"] = "ppo",
    activation: Activation = SAC.activation,
    seeds: int = 3,
    smoke: bool = False,
) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    name = f"learning-{family}" + ("-smoke" if smoke else "")
    study = with_budgets(with_hyperparameters(cells(name, seeds)), equal_budget=False)
    if smoke:
        study = smaller(study).with_seeds(1)
    if family == "sac":
        study = sac(study, activation)
    else:
        study = ppo(study) if family == "ppo" else off_policy(study)
    if smoke:
        return study
    part = 10 if family == "ppo" else 5
    return replace(study, cells=tuple(replace(c, steps=c.steps // part) for c in study.cells))
