"""Does everything learn? Cells of the paper's sweep at a fraction of its budget.

    headwise study run learning                          # PPO, one tenth of the steps
    headwise study run learning --args family=off_policy # DQN and SAC, one fifth
    headwise study run learning --args family=sac        # SAC with our own settings, one fifth
    headwise study run learning --args family=dqn --args "settings={'dueling': False}"

PPO: every factorization on CoopPush, Platform and dependent HybridShoot. DQN and SAC: all 28 cells
on Platform, and on the other environments one of each in every view (DQN vdn, SAC shared).

SAC for itself: the same cells, with what Headwise does unless told otherwise where that is not what
the paper has. To try something else: `--args "settings={'activation': 'tanh'}"`.

DQN for itself: every cell whose networks may be dueling or plain, one fifth of the steps.

`--args part=1` gives every run all of the paper's steps, `part=5` a fifth of them, and so on.
"""

from dataclasses import replace
from typing import Any, Literal

from headwise.algorithms.sac import SAC
from headwise.studies.paper.plans.paper import (
    FACTORIZATIONS,
    cells,
    smaller,
    with_budgets,
    with_hyperparameters,
)
from headwise.study import Study

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


def sac(study: Study) -> Study:
    """The cells of SAC, with our own settings."""
    names = ("target_entropy", "entropy_bonus", "actor_gradient", "activation")
    own = {name: getattr(SAC(), name) for name in names}
    return off_policy(study).without(algorithm="dqn").change(settings=own)


def dqn(study: Study) -> Study:
    """The cells of DQN whose networks may be plain."""
    return study.without(algorithm=("ppo", "sac")).without(factorization=("qplex", "ar"))


FAMILIES = {"ppo": (ppo, 10), "off_policy": (off_policy, 5), "sac": (sac, 5), "dqn": (dqn, 5)}
"""The cells of each, and the part of the paper's steps that they get unless told otherwise."""


def make(
    family: Literal["ppo", "off_policy", "sac", "dqn"] = "ppo",
    settings: dict[str, Any] | None = None,
    part: Literal[1, 2, 5, 10] | None = None,
    seeds: int = 3,
    smoke: bool = False,
) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    choose, usual = FAMILIES[family]
    name = f"learning-{family}" + ("-smoke" if smoke else "")
    study = with_budgets(with_hyperparameters(cells(name, seeds)), equal_budget=False)
    if smoke:
        study = smaller(study).with_seeds(1)
    study = choose(study).change(settings=settings or {})
    if smoke:
        return study
    return replace(
        study,
        cells=tuple(
            replace(c, total_timesteps=c.total_timesteps // (part or usual)) for c in study.cells
        ),
    )
