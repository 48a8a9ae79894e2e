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


def make(total_timesteps: int = 200_000, seeds: int = 5, smoke: bool = False) -> Study:
    """The study; `smoke` is the same with tiny budgets and one seed."""
    study = Study.grid(
        "joint_options" + ("-smoke" if smoke else ""),
        environments=[team(size) for size in (1, 2, 3, 4)],
        views=("discrete",),
        algorithms=("ppo",),
        factorizations=("shared", "joint"),
        total_timesteps=total_timesteps,
        seeds=seeds,
        settings={"learning_rate": 5e-4, "gamma": 0.98, "net_arch": (256, 256)},
        evaluate=None,
        about="One head for each particle, or one for all of them together?",
    ).change(settings={"n_steps": 256, "batch_size": 128, "n_epochs": 4, "ent_coef": 0.05})
    if not smoke:
        return study
    tiny = {"net_arch": (8, 8), "branch_width": 8, "n_steps": 8, "batch_size": 16, "n_epochs": 1}
    return study.change(total_timesteps=64, num_envs=4, settings=tiny).with_seeds(1)
