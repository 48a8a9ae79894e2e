"""What a study needs of an executor, and the list of them.

An executor asks for packs when it has room and yields events; it never touches the store. Another
kind (a batch system, say) is one more file with this protocol.
"""

from __future__ import annotations

import traceback as tracebacks
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from headwise.registry import Registry
from headwise.study.extras import NOTHING, Extras
from headwise.study.planner import Pack
from headwise.study.result import RunResult
from headwise.training.matmul_precision import MatmulPrecision


@dataclass(frozen=True)
class Stepped:
    """A pack is under way."""

    pack: Pack
    steps: int
    """Environment steps that each member has taken."""
    returns: Sequence[float] = ()
    """The mean return of each member's last episodes, NaN before the first; none if not known."""


@dataclass(frozen=True)
class Finished:
    """A pack is trained."""

    pack: Pack
    results: list[RunResult]


@dataclass(frozen=True)
class Crashed:
    """Training a pack raised an exception."""

    pack: Pack
    kind: str
    message: str
    traceback: str

    @classmethod
    def by(cls, pack: Pack, error: BaseException) -> Crashed:
        """From the exception."""
        text = "".join(tracebacks.format_exception(error))
        return cls(pack, type(error).__name__, str(error), text)


@dataclass(frozen=True)
class Lost:
    """The worker that trained a pack is gone: killed, out of memory, or its machine went down."""

    pack: Pack
    reason: str


Event: TypeAlias = Stepped | Finished | Crashed | Lost
Source: TypeAlias = Callable[[], Pack | None]
"""The next pack to train, or None if there is none at the moment."""


@dataclass(frozen=True)
class ExecutorSettings:
    """What a user may say about where to train."""

    workers: int | None = None
    """How many packs train at the same time; None is for the executor to say."""
    address: str | None = None
    """Of a cluster; None starts one here."""
    device: str = "cpu"
    """Where learners live."""
    thresholds: tuple[float, ...] = ()
    keep_checkpoints: bool = False
    """Whether results come with a checkpoint of the trained agent."""
    matmul_precision: MatmulPrecision = "float32"
    """What products are rounded to; workers that are processes of their own must be told."""
    imports: tuple[str, ...] = ()
    """What such workers must load before they train; see `headwise.study.imports`."""
    extras: Extras = NOTHING
    """What is wanted beside results."""


class Executor(Protocol):
    """Trains packs. A context manager: workers live between entering and leaving."""

    @property
    def num_workers(self) -> int:
        """How many packs it trains at the same time."""

    def __enter__(self) -> Executor:
        """Starts the workers."""

    def __exit__(self, *_: object) -> None:
        """Stops them, whatever they are doing."""

    def run(self, source: Source) -> Iterator[Event]:
        """Trains what the source has, until it has no more and all packs taken are accounted for.

        After each event the source is asked again, so a pack may come back.
        """


executors: Registry[Callable[[ExecutorSettings], Executor]] = Registry("executor")
