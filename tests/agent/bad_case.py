"""A bad input, and what many of them are made from: a small agent and a small environment."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

import headwise as hw

SHOOT = "headwise/HybridShoot-v0"
TINY = {"net_arch": (8,), "num_envs": 2}


class Bad(NamedTuple):
    """One thing that a user should not do."""

    group: str
    what: str
    do: Callable[[Path], object]
    """Does it, with a folder to do it in."""


def toy(action=None, observation=None, **methods):
    """An environment class with these spaces, well-behaved but for the methods given."""
    body = {
        "action_space": spaces.Discrete(3) if action is None else action,
        "observation_space": spaces.Box(-1, 1, (2,)) if observation is None else observation,
        "reset": lambda self, *, seed=None, options=None: (np.zeros(2, np.float32), {}),
        "step": lambda self, a: (np.zeros(2, np.float32), 0.0, False, False, {}),
    }
    return type("Toy", (gym.Env,), body | methods)


def trained(env=SHOOT, algo="ppo", **settings):
    return hw.Agent(algo, env, **{**TINY, **settings})


def learns(env, **settings):
    return lambda _: trained(env, **settings).learn(50, progress=False)
