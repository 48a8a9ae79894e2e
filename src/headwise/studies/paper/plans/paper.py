"""The paper's sweep, 220 cells of 5 seeds: Tables 2 and 5, Figures 4 to 36.

    headwise study run paper --dry-run                 # what it costs
    headwise study run paper                           # budgets of the appendix
    headwise study run paper --args equal_budget=true  # the same steps for all, in another folder
    headwise study run paper --args preset=as_published  # PPO as in the authors' package, likewise

Hyperparameters and budgets are those of appendix C, 11 bins for DQN those of its text. The rest is
not in the paper, and the same for every cell: of the authors' package PPO's bonus for entropy
(0.05), SAC's tanh and the warm-up of 1000 (lander: 5000); ours are 16 environment slots, one
gradient step for 4 transitions off-policy, and a PPO that treats every factorization alike.

With `preset=as_published` there are the 45 cells of PPO that the package has an own treatment of,
`shared`, `vdn` and `qplex`, each as it is treated there; nothing else would be different.
"""

from headwise.studies.paper.plans._decoupler_presets import Preset, published_ppo
from headwise.study import Environment, Study

VIEWS = ("discrete", "hybrid", "continuous")
ALGORITHMS = ("dqn", "ppo", "sac")
FACTORIZATIONS = ("independent", "shared", "vdn", "qplex", "ar", "joint")
ENVIRONMENTS = (
    Environment("CoopPush", "push", {"layout": "default"}),
    Environment("HybridShoot", "shoot-dep", {"mode": "dependent"}),
    Environment("HybridShoot", "shoot-indep", {"mode": "independent"}),
    Environment("Lander", "lander"),
    Environment("Platform", "platform"),
)
SHOOT = ("shoot-dep", "shoot-indep")

BUDGETS = {
    # environment: (PPO, SAC and DQN), and in the hybrid view where it differs (table max_steps)
    "push": ((2_000_000, 1_000_000), (3_000_000, 2_000_000)),
    "lander": ((600_000, 400_000), (1_000_000, 600_000)),
    "shoot-dep": ((1_500_000, 800_000), (1_500_000, 800_000)),
    "shoot-indep": ((1_500_000, 800_000), (1_500_000, 800_000)),
    "platform": ((500_000, 200_000), (500_000, 200_000)),
}


def cells(name: str, seeds: int) -> Study:
    """The 44 cells of each environment: 16 DQN, 16 PPO, 12 SAC."""
    grid = Study.grid(
        name,
        environments=ENVIRONMENTS,
        views=VIEWS,
        algorithms=ALGORITHMS,
        factorizations=FACTORIZATIONS,
        total_timesteps=1,  # set below
        seeds=seeds,
        settings={"learning_rate": 5e-4, "gamma": 0.99, "net_arch": (256, 256)},
        evaluate=None,  # the paper ranks by returns in training
        about="Six factorizations of the action, three families of algorithms, three views of "
        "five environments.",
    )
    return (
        grid.without(factorization="joint", view=("hybrid", "continuous"))  # no joint action list
        .without(algorithm="sac", factorization="qplex")  # SAC has Concat and BDQ, no mixer
        .without(algorithm="sac", factorization="vdn", view="continuous")  # BDQ is Concat there
    )


def with_hyperparameters(study: Study) -> Study:
    """Appendix C."""
    study = study.change(
        algorithm="ppo",
        settings={"n_steps": 256, "batch_size": 128, "n_epochs": 4, "ent_coef": 0.05},
    )
    study = study.change(
        algorithm="ppo",
        view="hybrid",
        environment=("push", *SHOOT, "platform"),
        settings={"n_epochs": 5},
    )
    study = study.change(
        algorithm=("sac", "dqn"),
        settings={"tau": 0.01, "updates_per_step": 0.25, "buffer_size": 100_000, "batch_size": 256},
    )
    study = study.change(
        algorithm="sac",
        settings={
            "target_entropy": 0.5,
            "entropy_bonus": "whole",
            "actor_gradient": "straight_through",
            "activation": "tanh",
        },
    )
    study = study.change(environment="push", settings={"gamma": 0.98})
    study = study.change(
        environment=("push", "lander"), algorithm=("sac", "dqn"), settings={"buffer_size": 50_000}
    )
    study = study.change(
        environment="push",
        view="discrete",
        algorithm=("sac", "dqn"),
        settings={"batch_size": 128},
    )
    study = study.change(environment="lander", settings={"net_arch": (128, 128)})
    study = study.change(
        environment="lander", algorithm="ppo", settings={"n_steps": 128, "batch_size": 64}
    )
    return study.change(
        environment="lander",
        algorithm=("sac", "dqn"),
        settings={"batch_size": 128, "learning_starts": 5000},
    )


def with_budgets(study: Study, equal_budget: bool) -> Study:
    """The appendix's steps; or for every cell of an environment the fewest that any has there."""
    for environment, (plain, hybrid) in BUDGETS.items():
        for view in VIEWS:
            on_policy, off_policy = hybrid if view == "hybrid" else plain
            if equal_budget:
                on_policy = off_policy = min(*plain, *hybrid)
            study = study.change(
                environment=environment, view=view, algorithm="ppo", total_timesteps=on_policy
            ).change(
                environment=environment,
                view=view,
                algorithm=("sac", "dqn"),
                total_timesteps=off_policy,
            )
    return study


def as_published(study: Study) -> Study:
    """PPO as the authors' package has it: a baseline and two critics that branch."""
    study = study.without(algorithm=("dqn", "sac"))
    study = study.without(factorization=("independent", "ar", "joint"))
    for name in ("shared", "vdn", "qplex"):
        weights = {} if name == "shared" else {"importance": "grad"}
        study = study.change(factorization=name, settings=published_ppo(name) | weights)
    study = study.change(view=("hybrid", "continuous"), settings={"mean_penalty": 0.05})
    # Its baseline discounts as the memory does, which is told neither lambda nor gamma.
    return study.change(environment="push", factorization="shared", settings={"gamma": 0.99})


def smaller(study: Study) -> Study:
    """Every cell, with tiny networks and budgets: two updates or a few."""
    return (
        study.change(
            total_timesteps=64, num_envs=4, settings={"net_arch": (8, 8), "branch_width": 8}
        )
        .change(algorithm="ppo", settings={"n_steps": 2, "batch_size": 16, "n_epochs": 1})
        .change(
            algorithm=("sac", "dqn"),
            settings={"learning_starts": 32, "batch_size": 8, "buffer_size": 64},
        )
        .change(factorization="qplex", factorization_settings={"mixer_width": 8})
    )


def make(
    equal_budget: bool = False, preset: Preset = "sound", seeds: int = 5, smoke: bool = False
) -> Study:
    """The study; `smoke` has every cell with a tiny budget and one seed."""
    parts = ["paper", *["equal_budget"] * equal_budget, *["as_published"] * (preset != "sound")]
    name = "-".join([*parts, *["smoke"] * smoke])
    study = with_budgets(with_hyperparameters(cells(name, seeds)), equal_budget)
    study = smaller(study).with_seeds(1) if smoke else study
    return study if preset == "sound" else as_published(study)
