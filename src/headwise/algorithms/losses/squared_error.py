"""The squared error of a value over the rows of a minibatch that count."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.algorithms.losses.columns_loss import parts_of
from headwise.population import member_sum

_BLOCK = 1024  # of the kernel: numbers in a block
_BLOCKS = 8  # of the kernel: blocks that one program goes through


def squared_error(predicted: Tensor, target: Tensor, share: Tensor) -> Tensor:
    """The sum over columns and mean over rows of the squared error of each member, (P,).

    Args:
        predicted: What the critic says, (P, B, G), through which gradients flow.
        target: What it should have said, (P, B, G).
        share: What a row counts, (P, B, 1).
    """
    if predicted.device.type == "cuda" and predicted.shape == target.shape:
        loss: Tensor = _SquaredError.apply(  # type: ignore[no-untyped-call]
            predicted, target, share
        )
        return loss
    return member_sum((predicted - target).square() * share)


class _SquaredError(torch.autograd.Function):
    """One kernel for the error and its slope, whose scale is not known before the backward pass."""

    @staticmethod
    def forward(ctx: Any, predicted: Tensor, target: Tensor, share: Tensor) -> Tensor:
        from headwise.algorithms.kernels.squared_error import add_squares

        predicted, members = predicted.contiguous(), predicted.shape[:-2].numel()
        rows, columns = predicted.shape[-2:]
        slope = torch.empty_like(predicted)
        parts, each = parts_of(rows * columns, _BLOCK, _BLOCKS)
        sums = torch.empty((members, parts), device=predicted.device)
        add_squares[(members, parts)](
            predicted, target.contiguous(), share.contiguous(), slope, sums, rows, columns, each,
            BLOCK=_BLOCK,
        )  # fmt: skip
        ctx.save_for_backward(slope)
        return sums.squeeze(-1) if parts == 1 else sums.sum(-1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return slope * grad[..., None, None], None, None
