"""What the loop needs of an algorithm: act on observations, learn from data, return numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    get_args,
    get_type_hints,
)

import torch
from torch import Tensor

from headwise.algorithms.schedules import Schedule, extremes, plain_schedule, value_at
from headwise.checks import check_settings
from headwise.errors import ConfigError
from headwise.factorizations import Factorization
from headwise.heads.layout import Layout
from headwise.nets.encoders import NetworkConfig
from headwise.nets.preprocess import Seen
from headwise.ops import Buffer
from headwise.population import Keys, per_member
from headwise.registry import Registry, unknown
from headwise.spaces import ActionSpec, ObsSpec

_VARIES = "may vary along the population"
PerMember: TypeAlias = Annotated[float | tuple[float, ...], _VARIES]
"""A setting that may vary along the population: one number, or one for each member."""
_FOLLOWS = "may follow the run"
Scheduled: TypeAlias = Annotated[
    float | str | Schedule | tuple[float | str | Schedule, ...], _VARIES, _FOLLOWS
]
"""A setting that may follow the rest of the run as well: `linear`, `linear_3e-4`, or a function of
what remains. A function is kept as a table of its values."""

Metrics: TypeAlias = dict[str, Tensor]
"""What an update reports: (P,) for a member, (P, H) for a member's heads; on the device."""

LazyMetrics: TypeAlias = Callable[[], Metrics]
"""Computes the metrics of the update just made; call it before the next update."""

algorithms: Registry[type[AlgorithmConfig]] = Registry("algorithm")


@dataclass(frozen=True)
class Task:
    """What a learner is built for."""

    spec: ActionSpec
    """The action as the learner sees it."""
    obs_spec: ObsSpec
    """An observation as the learner sees it."""
    num_slots: int
    """Environment slots of each member (E)."""
    total_steps: int
    """Environment steps of each member over the whole run, for schedules."""
    factorization: Factorization
    keys: Keys
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """How observations become what networks see."""
    normalized: bool = False
    """Whether numbers of observations are brought to a common size before."""

    @property
    def device(self) -> torch.device:
        """Where the learner lives."""
        return self.keys.device


class Acted(NamedTuple):
    """Actions for every slot, and what memory must keep beside them."""

    action: Tensor
    """In the learner's form, (P, E, H)."""
    extra: dict[str, Tensor]
    """Named tensors (P, E, ...)."""


class Acting(NamedTuple):
    """How a learner acts by compiled operations alone, on buffers that stay where they are."""

    layout: Layout
    obs: Buffer
    """What is acted on, (P, 1, E, F)."""
    unit: Buffer
    """What is done, (P, 1, E, heads), as the learner has it."""
    extra: dict[str, Buffer]
    """What must be kept beside it, as in `Acted`."""
    see: Callable[[Tensor], None]
    """Takes in what to act on, (P, E, F)."""
    act: Callable[[], None]
    """Acts on what is in the buffer; may be recorded."""
    masked: bool
    """Whether it must `see` every time, because some options may never be chosen."""


class RolloutBatch(NamedTuple):
    """Everything that happened in T steps of every slot, tensors (P, T, E, ...)."""

    obs: Tensor
    action: Tensor
    reward: Tensor
    next_obs: Tensor
    """The true successor, also where an episode ended."""
    terminated: Tensor
    truncated: Tensor
    valid: Tensor
    """False where no transition took place."""
    legal: Tensor | None
    extra: dict[str, Tensor]
    """What the algorithm asked to keep when it acted."""
    next_legal: Tensor | None = None
    """Which options are legal in the true successor, where some are not."""


class ReplayBatch(NamedTuple):
    """Transitions drawn from replay, tensors (P, B, ...)."""

    obs: Tensor
    action: Tensor
    reward: Tensor
    """The discounted sum over the steps between `obs` and `next_obs`."""
    next_obs: Tensor
    discount: Tensor
    """What the value of `next_obs` counts: gamma to the number of those steps, and nothing where
    the task ended on the way. A truncated episode goes on in value."""
    legal: Tensor | None
    next_legal: Tensor | None


@dataclass(frozen=True)
class RolloutPlan:
    """On-policy: an update after every `length` steps of the slots, on all of them."""

    length: int


@dataclass(frozen=True)
class ReplayPlan:
    """Off-policy: updates in a fixed ratio to environment steps, on rows drawn from the past."""

    capacity: int
    """Transitions kept for each member."""
    batch_size: int
    learning_starts: int
    """Transitions before the first update."""
    updates_per_step: float
    """Updates for each environment step of a member."""
    n_step: int = 1

    def updates_by(self, steps: int) -> int:
        """Updates that are due in all, once a member has so many steps in memory."""
        return max(int((steps - self.learning_starts) * self.updates_per_step), 0)


class Algorithm(Protocol):
    """A learner for a population; one that derives from this class is typed by it.

    It keeps the count of what it has done itself, and draws its random numbers by that.
    """

    plan: RolloutPlan | ReplayPlan
    """What data an update wants, and when."""
    num_uniforms: int
    """Uniform numbers that `policy` takes to draw an action; 0 where nothing can be drawn."""
    num_parameters: int
    """How many numbers one member learns."""
    extra: dict[str, int]
    """Columns of what `act` wants kept beside an action, by name."""

    @property
    def alive(self) -> Tensor:
        """Which members have not diverged, (P,)."""

    def act(self, obs: Tensor, legal: Tensor | None = None) -> Acted:
        """Actions for collecting data, exploration included."""

    def lay_out(self, total_steps: int) -> None:
        """Says how many environment steps a member will take, before it takes the first one."""

    def follow(self, remaining: float) -> None:
        """Brings settings that follow the run to where so much of it remains, from 1 to 0."""

    def compiled_acting(self) -> Acting | None:
        """The same as operations on buffers, where every option is legal; None where it cannot."""
        return None

    def policy(
        self,
        obs: Seen,
        uniform: Tensor | None = None,
        legal: Tensor | None = None,
        member: int | None = None,
    ) -> Tensor:
        """Actions (P, B, H) of the policy learned: greedy ones, or drawn if uniforms are given.

        With a `member` only that one acts, and P is 1 in all tensors. Where leaves are packed, an
        exported policy gives them by path, (1, B, ...), for `nets.preprocess` to take.
        """

    def update(self, batch: Any) -> LazyMetrics:
        """One update from a batch of the kind that the plan asks for."""

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that later updates depend on, each with the member axis first."""

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""


@dataclass(frozen=True, kw_only=True)
class AlgorithmConfig:
    """Settings that all algorithms share."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    """What a factorization must offer: methods of `Factorization`."""

    learning_rate: Scheduled = 5e-4
    """Learning rate: a number; `linear_3e-4`, which decays from there to 0 over the run; `linear`,
    which decays from the default; or in Python a function of the remaining progress, 1 to 0."""
    gamma: PerMember = 0.99
    """Discount factor."""
    net_arch: tuple[int, ...] = (256, 256)
    """Widths of the networks' hidden layers."""
    bins: int | dict[str, int] | None = None
    """Bins that a continuous head (Range) is cut into, which makes it discrete: one number for all
    such heads, or one by head name."""

    def __post_init__(self) -> None:
        for name in scheduled_fields(self):
            label, default = f"{self.name} setting {name!r}", _default(self, name)
            value = plain_schedule(label, getattr(self, name), default)
            object.__setattr__(self, name, value)
        check_settings(self)
        self.require("learning_rate", 0.0, math.inf, open_low=True)
        self.require("gamma", 0.0, 1.0)
        if not self.net_arch:
            raise ConfigError(
                f"{self.name} setting 'net_arch' must have a layer",
                got=self.net_arch,
                allowed="(64,) is one, (64, 64) are two",
            )

    @classmethod
    def small(cls, **settings: Any) -> Self:
        """Settings for a run of a moment, which contract tests build on; others on top of them."""
        return cls(**{"net_arch": (16, 16)} | settings)

    def require(self, name: str, low: float, high: float, *, open_low: bool = False) -> None:
        """Refuses a number that is not within bounds, for any member."""
        value = getattr(self, name)
        for number in extremes(value):
            if not low <= number <= high or (open_low and number == low):
                allowed = f"above {low:g}" if open_low else f"from {low:g}"
                if math.isfinite(high):
                    allowed += f", at most {high:g}" if open_low else f" to {high:g}"
                raise ConfigError(
                    f"{self.name} setting {name!r} is out of range", got=value, allowed=allowed
                )

    def member_values(self, name: str, keys: Keys, remaining: float = 1.0) -> Tensor:
        """A per-member setting as a tensor (P,), when so much of the run remains."""
        value = value_at(getattr(self, name), remaining)
        return per_member(value, keys.num_members, name, keys.device)

    def build(self, task: Task) -> Algorithm:
        """The learner."""
        raise NotImplementedError


def per_member_fields(config: AlgorithmConfig | type[AlgorithmConfig]) -> tuple[str, ...]:
    """The names of the settings that may vary along the population, of a config or of its class."""
    return _fields_with(config if isinstance(config, type) else type(config), _VARIES)


def scheduled_fields(config: AlgorithmConfig) -> tuple[str, ...]:
    """The names of the settings that may follow the rest of the run."""
    return _fields_with(type(config), _FOLLOWS)


def _fields_with(kind: object, mark: str) -> tuple[str, ...]:
    return _marked_fields(kind, mark)  # to mypy, a class of dataclasses has no hash


@cache
def _marked_fields(kind: type[AlgorithmConfig], mark: str) -> tuple[str, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(f.name for f in fields(kind) if _marked(hints[f.name], mark))


def _marked(hint: Any, mark: str) -> bool:
    """Whether an annotation has a mark, or one of its alternatives has."""
    own = mark in getattr(hint, "__metadata__", ())
    return own or any(_marked(one, mark) for one in get_args(hint))


def _default(config: AlgorithmConfig, name: str) -> Any:
    return next(one.default for one in fields(config) if one.name == name)


def config_from(kind: type[Any], settings: dict[str, Any]) -> Any:
    """A config from keyword settings, with a suggestion for a name that does not exist."""
    known = [f.name for f in fields(kind)]
    for name in settings:
        if name not in known:
            raise unknown(f"{kind.name} setting", name, known)
    return kind(**settings)
