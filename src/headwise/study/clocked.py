"""A learner with a stopwatch: how long it takes to act and to update."""

from __future__ import annotations

import time
from typing import Any

from torch import Tensor

from headwise.algorithms.base import Acted, Algorithm, LazyMetrics, ReplayBatch, RolloutBatch

_WARMING_UP = 1
"""Calls that do not count: the first one allocates."""


class Stopwatch:
    """The time of calls after the first."""

    def __init__(self) -> None:
        self.calls = 0
        self._seconds = 0.0
        self._counted = 0

    def add(self, seconds: float) -> None:
        """Takes the time of one call."""
        self.calls += 1
        if self.calls > _WARMING_UP:
            self._seconds += seconds
            self._counted += 1

    @property
    def mean_ms(self) -> float | None:
        """Milliseconds of a call; None before one counted."""
        return 1e3 * self._seconds / self._counted if self._counted else None


class Clocked:
    """Stands in for an algorithm and passes everything on."""

    def __init__(self, algorithm: Algorithm) -> None:
        self.inner: Any = algorithm
        self.acting = Stopwatch()
        self.updating = Stopwatch()

    def act(self, obs: Tensor, legal: Tensor | None = None) -> Acted:
        """Acts, and takes the time."""
        start = time.perf_counter()
        acted: Acted = self.inner.act(obs, legal)
        self.acting.add(time.perf_counter() - start)
        return acted

    def update(self, batch: RolloutBatch | ReplayBatch) -> LazyMetrics:
        """Updates, and takes the time."""
        start = time.perf_counter()
        metrics: LazyMetrics = self.inner.update(batch)
        self.updating.add(time.perf_counter() - start)
        return metrics

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
