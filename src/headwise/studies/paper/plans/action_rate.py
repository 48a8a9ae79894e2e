"""Are continuous actions better than discrete ones where actions last longer? Section 4.5.

    headwise study run action_rate

The paper: by "lower control frequency" continuous precision becomes "more advantageous than
duty-cycle discrete control". CoopPush of one boulder and two particles with 5, 10, 20 and 40
physics steps to an action, in the discrete and the continuous view. Episodes last as long in
seconds, discounts are per second, and every run has as many actions: the fewer an episode takes,
the more episodes. PPO and DQN with `vdn`; all else as in the sweep.
"""

from dataclasses import replace

from headwise.studies.paper.plans.paper import cells, smaller, with_hyperparameters
from headwise.study import Study

RATES = (5, 10, 20, 40)
STEPS = 300_000
PAIR = {"particles": [[-5, 5], [-5, -5]], "boulders": [[0, 0]], "landmarks": [[15, 0], [-15, 0]]}


def make(seeds: int = 5, smoke: bool = False) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    name = "action_rate" + ("-smoke" if smoke else "")
    study = with_hyperparameters(cells(name, seeds)).change(total_timesteps=STEPS)
    study = smaller(study).with_seeds(1) if smoke else study
    study = study.without(environment=("lander", "platform", "shoot-dep", "shoot-indep"))
    study = study.without(view="hybrid").without(algorithm="sac")
    study = study.without(factorization=("independent", "shared", "qplex", "ar"))
    study = study.without(factorization="joint").change(env_settings=PAIR)
    variants = [
        study.change(
            env_settings={"num_physics_steps": each, "max_episode_steps": 2000 // each},
            settings={"gamma": round(0.98 ** (each / 10), 6)},
            labels={"physics_steps": f"{each}"},
        )
        for each in RATES
    ]
    return replace(
        study,
        cells=tuple(cell for variant in variants for cell in variant.cells),
        about="Are continuous actions better where actions are held longer?",
    )
