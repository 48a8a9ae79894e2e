"""Action and observation spaces as learners see them, and the way there from Gymnasium's."""

from headwise.spaces.action import ActionSpec, Choice, Condition, Head, Range
from headwise.spaces.convert import ActionCodec
from headwise.spaces.links import Forbid, Given, Link, Require, given, legal_actions
from headwise.spaces.observation import ObsCodec, ObsSpec
from headwise.spaces.prior import ObsPrior
from headwise.spaces.views import BinRule, View, ViewKind, bin_index, bin_values

__all__ = [
    "ActionCodec",
    "ActionSpec",
    "BinRule",
    "Choice",
    "Condition",
    "Forbid",
    "Given",
    "Head",
    "Link",
    "ObsCodec",
    "ObsPrior",
    "ObsSpec",
    "Range",
    "Require",
    "View",
    "ViewKind",
    "bin_index",
    "bin_values",
    "given",
    "legal_actions",
]
