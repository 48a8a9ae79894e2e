"""What must advantages be measured from, and what may a mixer be like? Appendix B.

    headwise study run centering

DQN with and without a mixer on ContextualDecoupler, its advantages measured from the best option
(the paper's "structural necessity"), from their mean and from nothing; mixers with an ELU or a ReLU
and weights by size or by softplus. A ReLU would let nothing of the first through: it is left out.
"""

from dataclasses import replace
from itertools import product
from typing import Literal

from headwise.algorithms.dqn import DQN
from headwise.factorizations import Factorization
from headwise.factorizations.qplex import QPLEX
from headwise.factorizations.values import Center
from headwise.factorizations.vdn import VDN
from headwise.studies.paper.plans._decoupler_cells import SMOKE_ENVS, SMOKE_STEPS, STEPS
from headwise.studies.paper.plans.decoupler_cross_family import OFF_POLICY
from headwise.study import Cell, Study

CENTERS: tuple[Center, ...] = ("max", "mean", "none")
BENDS: tuple[Literal["elu", "relu"], ...] = ("elu", "relu")
WEIGHTS: tuple[Literal["abs", "softplus"], ...] = ("abs", "softplus")


def kinds() -> list[tuple[Factorization, dict[str, str]]]:
    """Every kind of value, and what sets it apart."""
    found: list[tuple[Factorization, dict[str, str]]] = [
        (VDN(center=center), {"center": center, "mixer": "sum"}) for center in CENTERS
    ]
    for center, bend, weights in product(CENTERS, BENDS, WEIGHTS):
        if (center, bend) != ("max", "relu"):
            mixer = QPLEX(mixer_width=64, center=center, mixer_bend=bend, mixer_weights=weights)
            found.append((mixer, {"center": center, "mixer": f"{bend}-{weights}"}))
    return found


def make(seeds: int = 5, smoke: bool = False) -> Study:
    """The study; `smoke` is the same with tiny budgets and one seed."""
    config = DQN(**OFF_POLICY)
    if smoke:
        config = replace(config, learning_starts=64, batch_size=32)
    cells = tuple(
        Cell.of(
            "ContextualDecoupler",
            config,
            kind,
            view="discrete",
            total_timesteps=SMOKE_STEPS if smoke else STEPS,
            num_envs=SMOKE_ENVS if smoke else 16,
            labels=labels,
        )
        for kind, labels in kinds()
    )
    return Study(
        name="centering" + ("-smoke" if smoke else ""),
        cells=cells,
        seeds=tuple(range(1 if smoke else seeds)),
        thresholds=(50.0,),
        about="Is max-centering a structural necessity under a monotonic mixer?",
    )
