"""Settings that change over a run."""

from __future__ import annotations

from torch import Tensor


def elapsed(step: float | Tensor, span: float) -> float | Tensor:
    """The share of `span` steps that is over, at most 1."""
    if span <= 0.0:
        return 1.0
    return (step / span).clamp_max(1.0) if isinstance(step, Tensor) else min(step / span, 1.0)


def linear(start: Tensor, end: Tensor, step: float | Tensor, span: float) -> Tensor:
    """In a line from `start` to `end` over `span` steps, and `end` from then on."""
    return start + (end - start) * elapsed(step, span)
