"""When to write a checkpoint during a run, and what to do when that fails."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from headwise.errors import CheckpointError

SECONDS = 60.0
"""Time between checkpoints, where no number of steps is given."""
MAX_TIME_SHARE = 0.05
"""The largest share of the time that checkpoints may take, where no number of steps is given."""

logger = logging.getLogger("headwise")


class Saver:
    """Writes checkpoints now and then, and at the end.

    One that cannot be written is reported, and the run goes on: the previous one is still there,
    and the next may succeed. Only the last one raises.

    Args:
        save: Writes a checkpoint.
        every: Environment steps of a member between two; None goes by the clock.
        step: Environment steps at the start.
    """

    def __init__(self, save: Callable[[], None], every: int | None, step: int) -> None:
        self._save = save
        self._every = every
        self._next_step = step if every is None else (step // every + 1) * every
        self._next_time = time.monotonic() + SECONDS

    @property
    def next_step(self) -> float:
        """The step at which it is time; infinite if that goes by the clock."""
        return math.inf if self._every is None else self._next_step

    def due(self, step: int) -> bool:
        """Whether it is time."""
        if self._every is not None:
            return step >= self._next_step
        return time.monotonic() >= self._next_time

    def save(self, step: int) -> None:
        """Writes one, or reports why it could not."""
        started = time.monotonic()
        try:
            self._save()
        except CheckpointError as error:
            logger.warning("%s The run goes on, and tries again later.", error)
        ended = time.monotonic()
        if self._every is not None:
            self._next_step = (step // self._every + 1) * self._every
        self._next_time = ended + max(SECONDS, (ended - started) / MAX_TIME_SHARE)

    def finish(self) -> None:
        """Writes the last one; here a failure is an error."""
        self._save()
