"""Several trainings on one GPU, taken forward by one thread.

While the device works for one, the thread serves the others. With a thread for each, Python would
let only one of them go on at a time anyway, and they would spend more time handing over the turn
than using it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Turns:
    """A training that pauses whenever it waits for its stream.

    Args:
        work: The training; each `next` goes on until it waits again.
        stream: Where its device works; None is no device to wait for.
        about: Whatever tells it from the others.
    """

    work: Iterator[None]
    stream: torch.cuda.Stream | None = None
    about: Any = None
    result: Any = None
    """What the work returned, once it is over."""
    error: Exception | None = None
    """What it died of, if it did."""

    @property
    def ready(self) -> bool:
        """Whether it need not wait."""
        return self.stream is None or bool(self.stream.query())

    def go_on(self) -> bool:
        """Goes on until it waits again; False if it is over."""
        if self.stream is not None:
            torch.cuda.set_stream(self.stream)
        try:
            next(self.work)
        except StopIteration as end:
            self.result = end.value
            return False
        except Exception as error:  # whatever it is, it is that training's alone
            self.error = error
            return False
        return True


def one_round(trainings: Sequence[Turns]) -> list[Turns]:
    """Lets every training go on that need not wait, at least one of them; returns those now over.

    The current stream is then that of whoever went on last.
    """
    ready = [training for training in trainings if training.ready]
    # If all wait, the one that has waited longest is the likeliest to be ready first.
    return [training for training in ready or trainings[:1] if not training.go_on()]
