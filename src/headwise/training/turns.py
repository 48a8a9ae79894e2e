"""Several trainings on one GPU, taken forward by one thread.

While the device works for one, the thread serves the others. With a thread for each, Python would
let only one of them go on at a time anyway, and they would spend more time handing over the turn
than using it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

Question: TypeAlias = Callable[[], bool]
"""What a training that pauses leaves behind: whether it could go on without waiting."""

_NAP = 20e-6  # seconds; threads that step environments need the interpreter now and then


@dataclass
class Turns:
    """A training that pauses whenever it would wait.

    Args:
        work: The training; each `next` goes on until it would wait again.
        stream: Where its device works; None is the current one.
        about: Whatever tells it from the others.
    """

    work: Iterator[Question]
    stream: torch.cuda.Stream | None = None
    about: Any = None
    ready: Question = lambda: True
    """Whether it need not wait."""
    result: Any = None
    """What the work returned, once it is over."""
    error: Exception | None = None
    """What it died of, if it did."""

    def go_on(self) -> bool:
        """Goes on until it would wait again; False if it is over."""
        if self.stream is not None:
            torch.cuda.set_stream(self.stream)
        try:
            self.ready = next(self.work)
        except StopIteration as end:
            self.result = end.value
            return False
        except Exception as error:  # whatever it is, it is that training's alone
            self.error = error
            return False
        return True


def one_round(trainings: Sequence[Turns]) -> list[Turns]:
    """Lets every training go on that need not wait; returns those now over.

    If all wait it comes back soon, without having waited for one of them: that might be the one
    with the most to do. The current stream is then that of the loop that went on last.
    """
    ready = [training for training in trainings if training.ready()]
    if not ready:
        time.sleep(_NAP)
    return [training for training in ready if not training.go_on()]
