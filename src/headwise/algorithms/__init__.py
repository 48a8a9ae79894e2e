"""Algorithms: from data to updates. Pure tensor code that never logs or steps.

`ppo`, `dqn` and `sac` are the algorithms, and the other files what they are made of; what updates
minimise is in `losses`.

Importing this package imports every module in its folder, so a new file is registered by existing.
"""

import importlib
import pkgutil

from headwise.algorithms.base import Algorithm, AlgorithmConfig, algorithms

for _module in pkgutil.iter_modules(__path__):
    if not _module.ispkg:  # what they are built of is imported by those who use it
        importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Algorithm", "AlgorithmConfig", "algorithms"]
