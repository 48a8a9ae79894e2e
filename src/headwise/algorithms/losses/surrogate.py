"""The clipped objective of PPO."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_LARGEST = 20.0
"""The largest log-ratio: beyond it a ratio stops growing, and no gradient flows."""


def clipped_surrogate(
    log_ratio: Tensor, advantage: Tensor, low: Tensor, high: Tensor
) -> tuple[Tensor, Tensor]:
    """min(r A, clip(r, low, high) A), and the ratios r, through which no gradient flows.

    Args:
        log_ratio: The log of each ratio, new over old.
        advantage: What a ratio is worth.
        low: The lowest ratio that pays.
        high: The highest ratio that pays.
    """
    found: tuple[Tensor, Tensor] = _Clipped.apply(  # type: ignore[no-untyped-call]
        log_ratio, advantage, low, high
    )
    return found


class _Clipped(torch.autograd.Function):
    """Its slope by the log-ratio is r A, or nothing where the clipped product is the smaller one.

    Left to autograd, the two minima and the maximum alone would take fifteen operations more.
    """

    @staticmethod
    def forward(
        ctx: Any, log_ratio: Tensor, advantage: Tensor, low: Tensor, high: Tensor
    ) -> tuple[Tensor, Tensor]:
        ratio = log_ratio.clamp_max(_LARGEST).exp_()
        free = ratio * advantage
        held = ratio.clamp(low, high).mul_(advantage)
        # Written so that what is not a number stays so, and its member is found out.
        stops = (free > held).logical_or_(log_ratio > _LARGEST)
        ctx.save_for_backward(torch.where(stops, 0.0, free))
        ctx.mark_non_differentiable(ratio)
        ctx.set_materialize_grads(False)
        return torch.minimum(free, held), ratio

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
        (slope,) = ctx.saved_tensors
        return grad * slope, None, None, None
