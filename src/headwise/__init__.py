"""Reinforcement learning for actions made of several parts: discrete, continuous or both.

Importing it is cheap: neither torch nor the compiled module is loaded before it is needed.
"""

from headwise.envs.registration import register_environments
from headwise.errors import ConfigError, EnvError, HeadwiseError, SpaceError
from headwise.spaces import ActionCodec, ActionSpec, Choice, ObsCodec, ObsSpec, Range, View

__version__ = "0.1.0"
register_environments()

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
