"""How many options can a joint action have before PPO learns nothing from them?

    headwise study run joint_options

CoopPush with one to four particles, nine options each: 9, 81, 729 and 6,561 joint ones. `shared`
has a head for each particle, `joint` one head with an option for each combination; all else is as
in the paper's sweep, at a tenth of its steps. With one particle the two are the same thing.
"""

from headwise.study import Environment, Study

POINTS = [[5, 5], [-5, 5], [-5, -5], [5, -5]]  # where the particles of the default layout start


def team(size: int) -> Environment:
    """The default layout with so many particles."""
    layout = {"particles": POINTS[:size], "boulders": [[0, 0]], "landmarks": [[15, 0], [-15, 0]]}
    return Environment("CoopPush", f"push-{9**size}", layout)


def make(steps: int = 200_000, seeds: int = 5, smoke: bool = False) -> Study:
    """The study; `smoke` is the same with tiny budgets and one seed."""
    study = Study.grid(
        "joint_options" + ("-smoke" if smoke else ""),
        environments=[team(size) for size in (1, 2, 3, 4)],
        views=("discrete",),
        algorithms=("ppo",),
        factorizations=("shared", "joint"),
        steps=steps,
        seeds=seeds,
        settings={"lr": 5e-4, "gamma": 0.98, "hidden": (256, 256)},
        evaluate=None,
        about="One head for each particle, or one for all of them together?",
    ).change(settings={"rollout": 4096, "minibatch": 128, "epochs": 4, "entropy_coef": 0.05})
    if not smoke:
        return study
    tiny = {"hidden": (8, 8), "branch_width": 8, "rollout": 32, "minibatch": 16, "epochs": 1}
    return study.change(steps=64, num_envs=4, settings=tiny).with_seeds(1)
