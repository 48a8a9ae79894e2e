"""Reinforcement learning for actions made of several parts: discrete, continuous or both.

Importing it is cheap: neither torch nor the compiled module is loaded before it is needed.
"""

import os

from headwise.envs.registration import register_environments
from headwise.errors import ConfigError, EnvError, HeadwiseError, SpaceError
from headwise.spaces import ActionCodec, ActionSpec, Choice, ObsCodec, ObsSpec, Range, View

__version__ = "0.1.0"
register_environments()
# A product of matrices must not round differently for one member than for many. MKL reads this at
# its first product, so it is in time if no one else has multiplied before.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

__all__ = [
    "ActionCodec",
    "ActionSpec",
    "Choice",
    "ConfigError",
    "EnvError",
    "HeadwiseError",
    "ObsCodec",
    "ObsSpec",
    "Range",
    "SpaceError",
    "View",
    "__version__",
]
