"""Factorizations: how a joint policy or value is built from heads. One file each.

What they are built of is in `parts`, their soft values for SAC are in `soft`.

Importing this package imports every module in its folder, so a new file is registered by existing.
"""

import importlib
import pkgutil

from headwise.factorizations.base import Blueprint, Factorization, factorizations

for _module in pkgutil.iter_modules(__path__):
    if not _module.ispkg:  # what they are built of is imported by those who use it
        importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Blueprint", "Factorization", "factorizations"]
