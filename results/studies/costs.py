"""What does every cell of the paper's sweep cost on a CPU? Section 8.1.

    headwise study run costs --device cpu --executor inline
    headwise report runs/paper --times runs/costs

Runs on a GPU have no times of their own: captured updates of many populations overlap there. Here
every cell is trained by itself, one after the other, for as long as it takes to time its updates;
nothing is learnt in so few steps, and nothing of it is judged but the times.
"""

from dataclasses import replace

from headwise.studies.paper.plans.paper import cells, smaller, with_hyperparameters
from headwise.study import Cell, Study

ROLLOUTS = 2
"""Rollouts of PPO; the first update does not count."""
LEARNING = 640
"""Steps of DQN and SAC after the warm-up, with an update at every fourth."""


def enough(cell: Cell) -> Cell:
    """The cell with as many steps as timing takes."""
    settings = cell.settings
    if cell.algorithm == "ppo":
        return replace(cell, total_timesteps=ROLLOUTS * settings["n_steps"] * cell.num_envs)
    return replace(cell, total_timesteps=settings.get("learning_starts", 1000) + LEARNING)


def make(seeds: int = 1, smoke: bool = False) -> Study:
    """The study; `smoke` has every cell with a tiny budget."""
    name = "costs" + ("-smoke" if smoke else "")
    study = with_hyperparameters(cells(name, seeds))
    study = smaller(study) if smoke else study
    steps = study.cells if smoke else tuple(enough(cell) for cell in study.cells)
    return replace(study, cells=steps, about="What does a factorization cost?")
