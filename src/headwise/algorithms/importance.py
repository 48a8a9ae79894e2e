"""How much of the credit each head gets: importance to weights, and when weights apply."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.algorithms.schedules import elapsed
from headwise.population import power

_TINY = 1e-8
"""Keeps zero importance everywhere from being 0 / 0 (an untrained critic has it)."""


def importance_weights(
    importance: Tensor, alpha: float | Tensor, floor: float = 0.0, in_use: Tensor | None = None
) -> Tensor:
    """Weights (..., H) that sum to one: importance to the power alpha, shared out.

    alpha 0 gives every head the same; alpha 1 gives shares of the importance itself. A floor mixes
    in the uniform weights, so that no head is starved. Heads that an action does not use (`in_use`,
    zeros and ones) get nothing.
    """
    powered = power(importance + _TINY, alpha)
    if in_use is not None:
        powered = powered * in_use
    weights = powered / powered.sum(-1, keepdim=True)
    if floor == 0.0:
        return weights
    even = torch.ones_like(weights) if in_use is None else in_use
    return floor * even / even.sum(-1, keepdim=True) + (1.0 - floor) * weights


def annealed_alpha(update: int | Tensor, num_updates: int, share: float) -> float | Tensor:
    """Alpha for an update: 0 for the first one, rising in a line to 1 at a share of all updates."""
    return elapsed(update, max(share * num_updates, 1.0))
