"""What a run leaves behind: tables, scalars and where it was made. Plain data, so it can travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.study.run import Run

TIMINGS = ("wall_s", "update_ms", "act_ms")
"""Scalars that depend on the machine and on the company in the population; all others do not."""

FIRST_ENGINE = 1
"""The engine of results that do not say which one they are of."""


def engine_of(fingerprint: Mapping[str, Any]) -> int:
    """Which engine trained a run, by what is kept of where it was made."""
    told = fingerprint.get("engine", FIRST_ENGINE)
    return told if isinstance(told, int) else FIRST_ENGINE


@dataclass(frozen=True)
class EpisodeTable:
    """A row for each episode that ended, in order."""

    step: NDArray[np.int64]
    """Environment steps of the member when it ended."""
    returns: NDArray[np.float32]
    length: NDArray[np.int32]


@dataclass(frozen=True)
class MetricTable:
    """Long form: a row for each number that was reported."""

    step: NDArray[np.int64]
    name: list[str]
    """`train/loss`, `credit/accuracy`, and for a head's `heads/<head>/<metric>`."""
    value: NDArray[np.float32]


@dataclass(frozen=True)
class RunResult:
    """A finished run."""

    run: Run
    episodes: EpisodeTable
    metrics: MetricTable
    scalars: dict[str, Any]
    fingerprint: dict[str, Any]
    checkpoint: bytes | None = None
    """The trained agent, as a file that `Agent.load` reads, where it was asked for. As bytes, not
    as a path: a worker on another machine has no disk in common with the driver."""


@dataclass(frozen=True)
class RunFailure:
    """A run that raised, or whose worker was lost too often."""

    run: Run
    kind: str
    """The name of the exception."""
    message: str
    traceback: str
    fingerprint: dict[str, Any]
