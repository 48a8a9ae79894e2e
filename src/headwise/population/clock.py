"""A count that lives where the learner does, so that captured code can read and advance it."""

from __future__ import annotations

import torch
from torch import Tensor


class Clock:
    """A number of steps: a Python number on the CPU, a tensor on any other device.

    A CUDA graph runs the same kernels again and again without Python, so whatever changes from one
    run to the next must be in the device's memory.
    """

    def __init__(self, device: torch.device | str) -> None:
        self._count = 0
        self._tensor: Tensor | None = None
        if torch.device(device).type != "cpu":
            self._tensor = torch.zeros((), dtype=torch.int64, device=device)

    @property
    def now(self) -> int | Tensor:
        """The count, for formulas."""
        return self._count if self._tensor is None else self._tensor

    def advance(self, steps: int = 1) -> None:
        """Counts on."""
        if self._tensor is None:
            self._count += steps
        else:
            self._tensor += steps

    def read(self) -> int:
        """The count as a Python number; waits for the device."""
        return self._count if self._tensor is None else int(self._tensor)

    def set(self, count: int) -> None:
        """Goes to a count."""
        if self._tensor is None:
            self._count = count
        else:
            self._tensor.fill_(count)
