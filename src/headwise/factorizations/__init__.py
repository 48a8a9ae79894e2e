"""Factorizations: how a joint policy or value is built from heads. One file each.

Importing this package imports every module in its folder, so a new file is registered by existing.
"""

import importlib
import pkgutil

from headwise.factorizations.base import Factorization, factorizations

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Factorization", "factorizations"]
