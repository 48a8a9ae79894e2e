"""The numbers of the paper ("Revisiting Action Factorization for Complex Action Spaces").

They are what our results are held against, and nothing else in the report is typed in.
"""

from __future__ import annotations

from typing import NamedTuple

from headwise.report.names import ALGORITHMS, FACTORIZATIONS, VIEWS
from headwise.report.sweep import Asked

DECOUPLER_STEPS = 100_000


class Row(NamedTuple):
    """Mean and standard deviation over 16 seeds of a row of the factorial table."""

    final: tuple[float, float]
    auc: tuple[float, float]
    steps: tuple[float, float]
    ratio: tuple[float, float] | None
    """Variance of the inactive head's advantage over the active one's."""


FACTORIAL: dict[tuple[str, str], Row] = {
    ("shared", ""): Row((6.7, 8.9), (-37.2, 5.7), (100_000, 0), None),
    ("vdn", "uniform"): Row((82.3, 4.5), (23.2, 4.7), (61_376, 5_472), (1.0, 0.0)),
    ("vdn", "grad"): Row((85.3, 3.3), (25.2, 4.2), (59_861, 4_918), (0.863, 0.011)),
    ("vdn", "range"): Row((85.9, 2.5), (26.6, 4.0), (56_932, 4_067), (0.836, 0.021)),
    ("qplex", "uniform"): Row((85.3, 2.4), (29.0, 3.5), (55_821, 5_310), (1.0, 0.0)),
    ("qplex", "grad"): Row((89.2, 1.5), (33.0, 3.0), (51_478, 3_225), (0.853, 0.014)),
    ("qplex", "range"): Row((87.4, 2.5), (33.2, 3.6), (50_165, 3_310), (0.826, 0.047)),
}
"""Table "Aggregate results on the Contextual-Decoupler", by factorization and estimator."""


class Significance(NamedTuple):
    """A row of the significance table: weighted minus uniform."""

    difference: float
    t: float
    d: float


SIGNIFICANCE: dict[tuple[str, str, str], Significance] = {
    ("vdn", "range", "final"): Significance(3.66, 2.88, 1.02),
    ("vdn", "range", "auc"): Significance(3.41, 2.22, 0.78),
    ("vdn", "range", "steps"): Significance(-4444, -2.61, -0.92),
    ("vdn", "grad", "final"): Significance(3.04, 2.19, 0.77),
    ("vdn", "grad", "auc"): Significance(1.99, 1.28, 0.45),
    ("vdn", "grad", "steps"): Significance(-1515, -0.82, -0.29),
    ("qplex", "grad", "final"): Significance(3.88, 5.46, 1.93),
    ("qplex", "grad", "auc"): Significance(3.99, 3.50, 1.24),
    ("qplex", "grad", "steps"): Significance(-4343, -2.80, -0.99),
    ("qplex", "range", "final"): Significance(2.08, 2.37, 0.84),
    ("qplex", "range", "auc"): Significance(4.21, 3.40, 1.20),
    ("qplex", "range", "steps"): Significance(-5656, -3.62, -1.28),
}
"""Table "Significance of the variance-reduction effect", by factorization, estimator, metric."""

TASKS = (
    {"env": "CoopPush"},
    {"env": "HybridShoot", "mode": "dependent"},
    {"env": "HybridShoot", "mode": "independent"},
    {"env": "Lander"},
    {"env": "Platform"},
)
"""The environments of the sweep."""


def _has(view: str, algorithm: str, factorization: str) -> bool:
    if factorization == "joint":  # of options alone
        return view == "discrete"
    if algorithm == "sac":  # its critics see the continuous action whole: nothing is to be summed
        return factorization != "qplex" and (factorization, view) != ("vdn", "continuous")
    return True


SWEEP = tuple(
    Asked(task["env"], task.get("mode", "dependent"), view, algorithm, factorization)
    for task in TASKS
    for view in VIEWS
    for algorithm in ALGORITHMS
    for factorization in FACTORIZATIONS
    if _has(view, algorithm, factorization)
)
"""The 220 cells of the sweep."""

_BUDGETS: dict[str, dict[str, tuple[int, int]]] = {
    "CoopPush": {
        "discrete": (2_000_000, 1_000_000),
        "continuous": (2_000_000, 1_000_000),
        "hybrid": (3_000_000, 2_000_000),
    },
    "Lander": {
        "discrete": (600_000, 400_000),
        "continuous": (600_000, 400_000),
        "hybrid": (1_000_000, 600_000),
    },
    "HybridShoot": dict.fromkeys(("discrete", "hybrid", "continuous"), (1_500_000, 800_000)),
    "Platform": dict.fromkeys(("discrete", "hybrid", "continuous"), (500_000, 200_000)),
    "ContextualDecoupler": {"discrete": (DECOUPLER_STEPS, DECOUPLER_STEPS)},
}


def budget(env: str, view: str, algorithm: str) -> int | None:
    """The environment steps that the paper gave a run, None if it has no such run."""
    for_ppo, for_others = _BUDGETS.get(env, {}).get(view, (None, None))
    return for_ppo if algorithm == "ppo" else for_others
