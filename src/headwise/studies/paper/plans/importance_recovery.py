"""Do importance weights find the head that matters, online and offline? The paper's Figure 3.

    headwise study run importance_recovery

PPO on ContextualDecoupler, where the truth is known: VDN and QPLEX critics, both estimators, the
critic learning from the last rollout (online) or from rows of the past (offline).
`credit/correlation` and `credit/accuracy` are kept at every update. 5 seeds, 100,000 steps.
"""

from headwise.studies.paper.plans._decoupler_cells import ppo_cell
from headwise.studies.paper.plans._decoupler_presets import Preset
from headwise.study import Study

OFFLINE_ROWS = 80_000
"""The authors' buffer: 5,000 rows of 16 environments."""


def make(
    presets: tuple[Preset, ...] = ("sound", "as_published"), seeds: int = 5, smoke: bool = False
) -> Study:
    """The study; `smoke` is the same with tiny budgets and one seed."""
    return Study(
        name="importance_recovery" + ("-smoke" if smoke else ""),
        cells=tuple(
            ppo_cell(preset, critic, estimator, smoke, {"critic_data": data}, offline_rows=rows)
            for preset in presets
            for critic in ("vdn", "qplex")
            for estimator in ("range", "grad")
            for data, rows in (("online", 0), ("offline", OFFLINE_ROWS))
        ),
        seeds=tuple(range(1 if smoke else seeds)),
        thresholds=(50.0,),
        about="Do importance weights recover which head is active, and does an offline critic "
        "recover it better?",
    )
