"""Reinforcement learning for actions made of several parts: discrete, continuous or both.

Importing it is cheap: neither torch nor the compiled module is loaded before it is needed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from headwise.envs.registration import register_environments
from headwise.errors import CheckpointError, ConfigError, EnvError, HeadwiseError, SpaceError
from headwise.spaces import ActionCodec, ActionSpec, Choice, ObsCodec, ObsSpec, Range, View

if TYPE_CHECKING:
    from headwise.agent import Agent
    from headwise.training.callbacks import StopOnScore
    from headwise.training.evaluate import Evaluation
    from headwise.training.report import Report
    from headwise.training.sinks import (
        CSVSink,
        JSONLSink,
        MLflowSink,
        ParquetSink,
        TensorBoardSink,
        WandbSink,
    )

__version__ = "0.1.0"
register_environments()
# A product of matrices must not round differently for one member than for many. MKL reads this at
# its first product, so it is in time if no one else has multiplied before.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

_LATE = {
    "Agent": "headwise.agent",
    "Evaluation": "headwise.training.evaluate",
    "Report": "headwise.training.report",
    "StopOnScore": "headwise.training.callbacks",
    **dict.fromkeys(
        ("CSVSink", "JSONLSink", "MLflowSink", "ParquetSink", "TensorBoardSink", "WandbSink"),
        "headwise.training.sinks",
    ),
}
"""What needs torch, and is imported when it is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATE[name]), name)


__all__ = [
    "ActionCodec",
    "ActionSpec",
    "Agent",
    "CSVSink",
    "CheckpointError",
    "Choice",
    "ConfigError",
    "EnvError",
    "Evaluation",
    "HeadwiseError",
    "JSONLSink",
    "MLflowSink",
    "ObsCodec",
    "ObsSpec",
    "ParquetSink",
    "Range",
    "Report",
    "SpaceError",
    "StopOnScore",
    "TensorBoardSink",
    "View",
    "WandbSink",
    "__version__",
]
