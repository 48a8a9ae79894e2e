"""What the package knows of a compiled environment beside its rules, which are the C++ header's."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native import task_module
from headwise.envs.scripted import PolicyFactory

if TYPE_CHECKING:
    from headwise.envs.native.canvas import Canvas
    from headwise.envs.native.drawing import Scene
    from headwise.envs.native.engine import Engine

NO_HEADS, EVERY_HEAD = slice(0, 0), slice(None)

Measured: TypeAlias = Mapping[tuple[str, str], tuple[float, float, int, float, float, int]]
"""By mode and view: mean, error and episodes of random actions, then of the best policy known."""


@dataclass(frozen=True)
class Reference:
    """What random actions and a policy written by hand score in an environment."""

    how: str
    """Which policy that is, and what is the most there is."""
    policy: PolicyFactory
    measured: Measured
    mode: str = ""
    """The setting that makes the environment another task; the first mode measured is its default.
    """

    @property
    def modes(self) -> tuple[str, ...]:
        """The values of that setting; one empty word where there is none."""
        return tuple(dict.fromkeys(mode for mode, _ in self.measured))

    @property
    def views(self) -> tuple[str, ...]:
        """The views of the environment."""
        return tuple(dict.fromkeys(view for _, view in self.measured))

    @property
    def default_view(self) -> str:
        """The view where none is asked for."""
        return "hybrid" if "hybrid" in self.views else self.views[0]


class AgentHeads(NamedTuple):
    """The part of an agent in a team."""

    choices: slice = EVERY_HEAD
    """Which of the choice heads are its own."""
    ranges: slice = EVERY_HEAD
    """Which of the range heads."""
    order: NDArray[np.intp] | None = None
    """In which order it sees the observation; None as it is."""


@dataclass(frozen=True)
class NativeInfo:
    """A compiled environment, as its file in `tasks` describes it."""

    frames_per_second: int
    """How fast its steps should be shown."""
    draw: Callable[[Canvas, Scene], None]
    reference: Reference
    agents: Callable[[Engine], dict[str, AgentHeads]] | None = None
    """Who acts in it, by name, where it can be played by a team."""


def info_of(name: str) -> NativeInfo:
    """What the file of a compiled environment says."""
    info: NativeInfo = importlib.import_module(task_module(name)).ENV
    return info
