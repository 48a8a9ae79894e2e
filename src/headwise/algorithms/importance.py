"""How much of the credit each head gets: importance to weights, and when weights apply."""

from __future__ import annotations

from torch import Tensor

from headwise.population import power

_TINY = 1e-8
"""Keeps zero importance everywhere from being 0 / 0 (an untrained critic has it)."""


def importance_weights(importance: Tensor, alpha: float, floor: float = 0.0) -> Tensor:
    """Weights (..., H) that sum to one: importance to the power alpha, shared out.

    alpha 0 gives every head the same; alpha 1 gives shares of the importance itself. A floor mixes
    in the uniform weights, so that no head is starved.
    """
    powered = power(importance + _TINY, alpha)
    weights = powered / powered.sum(-1, keepdim=True)
    return weights if floor == 0.0 else floor / weights.shape[-1] + (1.0 - floor) * weights


def annealed_alpha(update: int, num_updates: int, share: float) -> float:
    """Alpha for an update: 0 for the first one, rising in a line to 1 at a share of all updates."""
    span = max(share * num_updates, 1.0)
    return min(update / span, 1.0)
