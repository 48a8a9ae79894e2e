"""A learner with a stopwatch: how long it takes to act and to update."""

from __future__ import annotations

import time
from typing import Any

from torch import Tensor

from headwise.algorithms.base import (
    Acted,
    Acting,
    Algorithm,
    LazyMetrics,
    ReplayBatch,
    RolloutBatch,
)
from headwise.ops import Buffer
from headwise.ops.collect import time_passes

_WARMING_UP = 1
"""Calls that do not count: the first one allocates."""


class Stopwatch:
    """The time of calls after the first."""

    def __init__(self) -> None:
        self.calls = 0
        self._seconds = 0.0
        self._counted = 0

    def add(self, seconds: float, calls: int = 1) -> None:
        """Takes the time of a call, or of several."""
        self.calls += calls
        if self.calls > _WARMING_UP:
            self._seconds += seconds
            self._counted += calls

    @property
    def mean_ms(self) -> float | None:
        """Milliseconds of a call; None before one counted."""
        return 1e3 * self._seconds / self._counted if self._counted else None


class Clocked:
    """Stands in for an algorithm and passes everything on."""

    def __init__(self, algorithm: Algorithm) -> None:
        self.inner: Any = algorithm
        self._acting = Stopwatch()
        self._watch = Buffer(len(algorithm.alive), 1, 6)
        self._timed: tuple[Acting | None, Acting | None] = None, None
        self.updating = Stopwatch()

    def act(self, obs: Tensor, legal: Tensor | None = None) -> Acted:
        """Acts, and takes the time."""
        start = time.perf_counter()
        acted: Acted = self.inner.act(obs, legal)
        self._acting.add(time.perf_counter() - start)
        return acted

    def compiled_acting(self) -> Acting | None:
        """The same as operations; a stopwatch runs between them."""
        inner: Acting | None = self.inner.compiled_acting()
        if inner is None or inner is self._timed[0]:
            return self._timed[1]

        def act() -> None:
            time_passes(self._watch, stops=False)
            inner.act()
            time_passes(self._watch, stops=True)

        self._timed = inner, inner._replace(act=act)
        return self._timed[1]

    @property
    def acting(self) -> Stopwatch:
        """The time it took to act, all members one after another."""
        _, nanoseconds, calls = self._watch.longs.flatten(0, 2).unbind(-1)
        if calls.any():
            self._acting.add(1e-9 * float(nanoseconds.sum()), int(calls.max()))
            self._watch.tensor.zero_()
        return self._acting

    def update(self, batch: RolloutBatch | ReplayBatch) -> LazyMetrics:
        """Updates, and takes the time."""
        start = time.perf_counter()
        metrics: LazyMetrics = self.inner.update(batch)
        self.updating.add(time.perf_counter() - start)
        return metrics

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
