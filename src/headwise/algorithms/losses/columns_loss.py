"""The clipped loss of a policy from log-probabilities and entropies, as one kernel on a GPU.

The tensor operations of the PPO learner do the same on other devices, and are its oracle.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

_AT_ONCE = 1024  # of the kernel: columns of rows in a block
_BLOCKS = 8  # of the kernel: blocks that one program goes through


class ColumnsLoss(NamedTuple):
    """What a minibatch says of a policy. Gradients flow through the loss alone."""

    loss: Tensor
    """(P,): minus the surrogate and the weighted entropy."""
    surrogate: Tensor
    """(P,), summed over columns."""
    entropy: Tensor
    """(P,), summed over columns."""
    ratio: Tensor
    """(P, B, G), or (P, B, 1) of all columns together."""


def columns_loss(
    log_prob: Tensor,
    entropy: Tensor,
    before: Tensor,
    advantage: Tensor,
    share: Tensor,
    clip: Tensor,
    entropy_coef: Tensor,
    *,
    joint: bool,
    weight: Tensor | None = None,
) -> ColumnsLoss:
    """The clipped loss of each member, on a CUDA device.

    Args:
        log_prob: Log-probabilities of what was done, (P, B, G).
        entropy: Entropies, (P, B, G).
        before: The log-probabilities when it was done, (P, B, G).
        advantage: What it was worth, (P, B, G), or (P, B, 1) for all columns.
        share: What a row counts, (P, B, 1).
        clip: How far a ratio may move, (P,).
        entropy_coef: The weight of the entropy, (P,).
        joint: Whether one ratio stands for all columns; their advantages are then added up.
        weight: What the entropy of each column counts, (G,); 1 if not given.
    """
    found = _ColumnsLoss.apply(  # type: ignore[no-untyped-call]
        log_prob, entropy, before, advantage, share, clip, entropy_coef, joint, weight
    )
    return ColumnsLoss(*found)


def parts_of(rows: int, block: int, blocks: int) -> tuple[int, int]:
    """In how many parts programs take rows, and how many there are in each: whole blocks of them.

    A minibatch of the usual size is one part, so that its sums are complete as the kernel ends.
    """
    each = min(-(-rows // block), blocks) * block
    return -(-rows // each), each


class _ColumnsLoss(torch.autograd.Function):
    """The slopes are found on the way; only their scale is not known before the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        log_prob: Tensor,
        entropy: Tensor,
        before: Tensor,
        advantage: Tensor,
        share: Tensor,
        clip: Tensor,
        entropy_coef: Tensor,
        joint: bool,
        weight: Tensor | None,
    ) -> tuple[Tensor, ...]:
        from headwise.algorithms.kernels.columns_loss import clip_columns

        rows, columns = log_prob.shape[-2:]
        given, members, device = advantage.shape[-1], clip.numel(), log_prob.device
        width = max(1 << (max(columns, given) - 1).bit_length(), 2)
        block = max(_AT_ONCE // width, 1)
        parts, each = parts_of(rows, block, _BLOCKS)
        slopes = torch.empty((2, *log_prob.shape), device=device)
        ratio = torch.empty((*log_prob.shape[:-1], 1 if joint else columns), device=device)
        sums = torch.empty((3, members, parts), device=device)
        clip_columns[(members, parts)](
            log_prob.contiguous(), before.contiguous(), advantage.contiguous(),
            entropy.contiguous(), share if weight is None else weight, share.contiguous(),
            clip, entropy_coef, ratio, sums, *slopes.unbind(0),
            rows, columns, given, int(given > 1), ratio.shape[-1], each,
            JOINT=joint, WEIGHTS=weight is not None, ROWS=block, COLUMNS=width,
        )  # fmt: skip
        ctx.save_for_backward(slopes)
        ctx.set_materialize_grads(False)  # of what no gradient flows through
        loss, *numbers = (sums.squeeze(-1) if parts == 1 else sums.sum(-1)).unbind(0)
        rest = (*numbers, ratio)
        ctx.mark_non_differentiable(*rest)
        return loss, *rest

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        to_log_prob, to_entropy = (slopes * grad[..., None, None]).unbind(0)
        return to_log_prob, to_entropy, None, None, None, None, None, None, None
