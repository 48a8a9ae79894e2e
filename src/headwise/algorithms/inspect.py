"""Inspectors: functions that look at a rollout's credit where the truth is known.

An inspector gets the rows of a rollout, (P, N, ...) by name, among them `obs`, `advantage` (one
column for each head where a branching critic shares out credit) and then also `weight`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from torch import Tensor

from headwise.registry import Registry

Inspector: TypeAlias = Callable[[dict[str, Tensor]], dict[str, Tensor]]

inspectors: Registry[Inspector] = Registry("inspector")
SHIPPED = ("headwise.studies.paper.inspector",)
"""Modules of the library that register more; read when a name is asked for that is not here."""


def inspector_named(name: str) -> Inspector:
    """The inspector of that name; refuses an unregistered name."""
    if name not in inspectors:
        for module in SHIPPED:
            import_module(module)
    return inspectors.get(name)
