"""Settings that change over a run, by clocks that are where the learner is."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.ops.operation import operation


def ticks(clock: Tensor) -> Tensor:
    """Clocks (P, 1, 1, 2), which hold the bits of an int64, as numbers (P, 1, 1, 1)."""
    return clock.view(torch.int64).to(clock.dtype)


@operation()
def linear(clock: Tensor, start: Tensor, end: Tensor, *, span: float) -> Tensor:
    """In a line from `start` to `end` over `span` ticks of the clock, and `end` from then on."""
    share = (ticks(clock) / span).clamp_max(1.0) if span > 0.0 else 1.0
    return start + (end - start) * share


@operation()
def decaying(clock: Tensor, *, start: float, decay: float, floor: float) -> Tensor:
    """Start * decay^clock, at least the floor."""
    return (start * decay ** ticks(clock)).clamp_min(floor)
