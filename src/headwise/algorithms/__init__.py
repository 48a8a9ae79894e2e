"""Algorithms: from data to updates. They never log or step an environment.

`ppo`, `dqn` and `sac` have a folder each: settings, learner and what the learner is made of.

Importing this package imports every module in its folder, so a new algorithm is registered by
existing.
"""

import importlib
import pkgutil

from headwise.algorithms.base import Algorithm, AlgorithmConfig, algorithms

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Algorithm", "AlgorithmConfig", "algorithms"]
