"""How a piece of the loop is run again and again: as it is on the CPU, as a CUDA graph on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import torch

from headwise.ops.program import Graphs

T = TypeVar("T")


class Captured(Generic[T]):
    """Something that is done many times.

    Args:
        body: Does it so many times, and returns what came of the last. That is overwritten by later
            runs on a GPU.
        device: Where it works.
        bundle: Runs that one graph holds, for callers that often want so many at once.
    """

    def __init__(self, body: Callable[[int], T], device: torch.device, *, bundle: int = 1) -> None:
        self._run = Graphs(body, bundle=bundle) if device.type == "cuda" else body

    def __call__(self, times: int = 1) -> T:
        """Runs it so many times, at least once; the result is that of the last run."""
        return self._run(times)
