"""Reinforcement learning for actions made of several parts: discrete, continuous or both.

Importing it is cheap: neither torch nor the compiled module is loaded before it is needed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from headwise.envs.native import register_environments
from headwise.errors import (
    CheckpointError,
    ConfigError,
    EnvError,
    ExportError,
    HeadwiseError,
    SpaceError,
    StoreError,
)
from headwise.spaces import (
    ActionCodec,
    ActionSpec,
    Choice,
    Forbid,
    Given,
    ObsCodec,
    ObsSpec,
    Range,
    Require,
    View,
    given,
    legal_actions,
)

if TYPE_CHECKING:
    from headwise.agent import Agent
    from headwise.algorithms import AlgorithmConfig
    from headwise.algorithms.dqn import DQN
    from headwise.algorithms.ppo import PPO
    from headwise.algorithms.sac import SAC
    from headwise.factorizations import Factorization
    from headwise.factorizations.ar import AR
    from headwise.factorizations.independent import Independent
    from headwise.factorizations.joint import Joint
    from headwise.factorizations.qplex import QPLEX
    from headwise.factorizations.shared import Shared
    from headwise.factorizations.vdn import VDN
    from headwise.nets.encoders import CNN, Entities, SimBa
    from headwise.report.results import Results
    from headwise.study import Cell, Environment, Evaluate, Study
    from headwise.training.callbacks import StopOnReturn
    from headwise.training.config import RunConfig
    from headwise.training.evaluate import Evaluation
    from headwise.training.loggers import (
        CSVLogger,
        JSONLLogger,
        Logger,
        MLflowLogger,
        ParquetLogger,
        TensorBoardLogger,
        WandbLogger,
    )
    from headwise.training.report import Report
    from headwise.training.watch import RunCallback

__version__ = "0.1.0"
ENGINE = 2
"""Which learning core this is: 1 was torch modules and autograd, 2 is operations. Another one
rounds in another order and keeps a state of other parts: runs of two engines are never one sample,
and a checkpoint is of one of them."""
register_environments()
# A product of matrices must not round differently for one member than for many. MKL reads this at
# its first product, so it is in time if no one else has multiplied before.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

_LATE = {
    "headwise.agent": ("Agent",),
    "headwise.algorithms": ("AlgorithmConfig",),
    "headwise.algorithms.dqn": ("DQN",),
    "headwise.algorithms.ppo": ("PPO",),
    "headwise.algorithms.sac": ("SAC",),
    "headwise.factorizations": ("Factorization",),
    "headwise.factorizations.ar": ("AR",),
    "headwise.factorizations.independent": ("Independent",),
    "headwise.factorizations.joint": ("Joint",),
    "headwise.factorizations.qplex": ("QPLEX",),
    "headwise.factorizations.shared": ("Shared",),
    "headwise.factorizations.vdn": ("VDN",),
    "headwise.nets.encoders": ("CNN", "Entities", "SimBa"),
    "headwise.report": ("Results",),
    "headwise.study": ("Cell", "Environment", "Evaluate", "Study"),
    "headwise.training.callbacks": ("StopOnReturn",),
    "headwise.training.config": ("RunConfig",),
    "headwise.training.evaluate": ("Evaluation",),
    "headwise.training.report": ("Report",),
    "headwise.training.loggers": (
        "CSVLogger",
        "JSONLLogger",
        "MLflowLogger",
        "ParquetLogger",
        "Logger",
        "TensorBoardLogger",
        "WandbLogger",
    ),
    "headwise.training.watch": ("RunCallback",),
}
"""What needs torch or takes its time, by its home, and is imported when it is asked for."""


_RENAMED = {"StopOnScore": "StopOnReturn"}
"""Old names, which go with the next release."""


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        import warnings

        warnings.warn(f"{name} is called {_RENAMED[name]} now", DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    for home, names in _LATE.items():
        if name in names:
            import importlib

            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return __all__


__all__ = [
    "AR",
    "CNN",
    "DQN",
    "ENGINE",
    "PPO",
    "QPLEX",
    "SAC",
    "VDN",
    "ActionCodec",
    "ActionSpec",
    "Agent",
    "AlgorithmConfig",
    "CSVLogger",
    "Cell",
    "CheckpointError",
    "Choice",
    "ConfigError",
    "Entities",
    "EnvError",
    "Environment",
    "Evaluate",
    "Evaluation",
    "ExportError",
    "Factorization",
    "Forbid",
    "Given",
    "HeadwiseError",
    "Independent",
    "JSONLLogger",
    "Joint",
    "Logger",
    "MLflowLogger",
    "ObsCodec",
    "ObsSpec",
    "ParquetLogger",
    "Range",
    "Report",
    "Require",
    "Results",
    "RunCallback",
    "RunConfig",
    "Shared",
    "SimBa",
    "SpaceError",
    "StopOnReturn",
    "StoreError",
    "Study",
    "TensorBoardLogger",
    "View",
    "WandbLogger",
    "__version__",
    "given",
    "legal_actions",
]
