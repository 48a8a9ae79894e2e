"""Settings that change over a run."""

from __future__ import annotations

from torch import Tensor


def linear(start: Tensor, end: Tensor, step: float, span: float) -> Tensor:
    """In a line from `start` to `end` over `span` steps, and `end` from then on."""
    share = 1.0 if span <= 0.0 else min(step / span, 1.0)
    return start + (end - start) * share
