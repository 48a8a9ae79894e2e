"""Studies: a plan of runs as a file, run anywhere, kept in a folder that survives anything.

Importing the room is cheap; what needs torch comes when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwise.study.cells import Cell
    from headwise.study.conductor import Options, conduct
    from headwise.study.environment import Environment
    from headwise.study.evaluation import Evaluate
    from headwise.study.load import load_study
    from headwise.study.run import Run
    from headwise.study.store import Store
    from headwise.study.study import Study

_HOMES = {
    "Cell": "cells",
    "Evaluate": "evaluation",
    "Environment": "environment",
    "Options": "conductor",
    "conduct": "conductor",
    "load_study": "load",
    "Run": "run",
    "Store": "store",
    "Study": "study",
}

__all__ = [
    "Cell", "Environment", "Evaluate", "Options", "Run", "Store", "Study", "conduct", "load_study",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
