"""Algorithms: from data to updates. One file each; pure tensor code that never logs or steps.

Importing this package imports every module in its folder, so a new file is registered by existing.
"""

import importlib
import pkgutil

from headwise.algorithms.base import Algorithm, AlgorithmConfig, algorithms

for _module in pkgutil.iter_modules(__path__):
    if not _module.name.endswith("_kernel"):  # only where there is a CUDA device
        importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Algorithm", "AlgorithmConfig", "algorithms"]
