"""The loss of a policy whose heads are all Choices, with its gradient.

One call of the compiled module, or one kernel on a GPU, does what the tensor operations of the PPO
learner do in some seventy. Those are for other policies and devices, and the oracle of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.algorithms.losses.columns_loss import parts_of
from headwise.factorizations.parts.layout import Layout

_MOST_OPTIONS = 64
"""Options of a head that the compiled module has room for."""
_AT_ONCE = 2048  # of the kernel: options of heads of rows in a block
_BLOCKS = 8  # of the kernel: blocks that one program goes through


class OptionsLoss(NamedTuple):
    """What a minibatch says of a policy. Gradients flow through the loss alone."""

    loss: Tensor
    """(P,): minus the surrogate and the weighted entropy, plus the weighted divergence."""
    surrogate: Tensor
    """(P,), summed over heads."""
    entropy: Tensor
    """(P,), summed over heads."""
    divergence: Tensor
    """(P,), summed over heads; zero if the old log-probabilities are not given."""
    log_prob: Tensor
    """(P, B, H)."""
    ratio: Tensor
    """(P, B, H)."""
    log_probs: Tensor
    """(P, B, H, K)."""


def fits_options_loss(layout: Layout) -> bool:
    """Whether the compiled loss, or the kernel, can do this action spec on this device."""
    plain = layout.num_ranges == 0 and not layout.is_conditional
    return plain and layout.max_options <= _MOST_OPTIONS and layout.device.type in ("cpu", "cuda")


def options_loss(
    logits: Tensor,
    taken: Tensor,
    log_prob: Tensor,
    advantage: Tensor,
    share: Tensor,
    old_log_probs: Tensor | None,
    coefficients: Tensor,
) -> OptionsLoss:
    """The clipped loss of each member.

    Args:
        logits: Masked logits of the policy, (P, B, H, K).
        taken: The options taken, (P, B, H).
        log_prob: Their log-probabilities when they were taken, (P, B, H).
        advantage: What they were worth, (P, B, H), or (P, B, 1) for all heads.
        share: What a row counts, (P, B, 1).
        old_log_probs: The policy that acted, (P, B, H, K); None leaves the divergence out.
        coefficients: The clip, and the weights of entropy and divergence, (3, P).
    """
    found = _OptionsLoss.apply(  # type: ignore[no-untyped-call]
        logits, taken, log_prob, advantage, share, old_log_probs, coefficients
    )
    return OptionsLoss(*found)


def flat_options_loss(
    layout: Layout,
    flat: Tensor,
    legal: Tensor | None,
    taken: Tensor,
    log_prob: Tensor,
    advantage: Tensor,
    share: Tensor,
    old_log_probs: Tensor | None,
    coefficients: tuple[Tensor, Tensor, Tensor],
) -> OptionsLoss:
    """`options_loss` on a CUDA device, from logits as a network gives them.

    Args:
        layout: The heads.
        flat: Logits of all options, (P, B, total), neither padded nor masked.
        legal: Which options may be chosen, (P, B, H, K); None means all.
        taken: As for `options_loss`, like all that follow.
        log_prob: (P, B, H).
        advantage: (P, B, H) or (P, B, 1).
        share: (P, B, 1).
        old_log_probs: (P, B, H, K), or None.
        coefficients: The clip, and the weights of entropy and divergence, (P,) each.
    """
    found = _FlatOptionsLoss.apply(  # type: ignore[no-untyped-call]
        flat, layout, legal, taken, log_prob, advantage, share, old_log_probs, *coefficients
    )
    return OptionsLoss(*found)


class _OptionsLoss(torch.autograd.Function):
    """The gradient is found on the way; only its scale is not known before the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        taken: Tensor,
        log_prob: Tensor,
        advantage: Tensor,
        share: Tensor,
        old_log_probs: Tensor | None,
        coefficients: Tensor,
    ) -> tuple[Tensor, ...]:
        from headwise import _core

        logits = logits.contiguous()
        log_probs, to_logits = torch.empty_like(logits), torch.empty_like(logits)
        by_head = torch.empty(2, *taken.shape)
        by_member = torch.empty(4, coefficients.shape[-1])
        _core.options_loss(
            logits.numpy(),
            taken.contiguous().numpy(),
            log_prob.contiguous().numpy(),
            advantage.contiguous().numpy(),
            share.contiguous().squeeze(-1).numpy(),
            None if old_log_probs is None else old_log_probs.contiguous().numpy(),
            coefficients.contiguous().numpy(),
            log_probs.numpy(),
            by_head.numpy(),
            by_member.numpy(),
            to_logits.numpy(),
        )
        ctx.save_for_backward(to_logits)
        ctx.set_materialize_grads(False)  # of what no gradient flows through
        loss, *numbers = by_member.unbind(0)
        rest = (*numbers, *by_head.unbind(0), log_probs)
        ctx.mark_non_differentiable(*rest)
        return loss, *rest

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        (to_logits,) = ctx.saved_tensors
        return to_logits * grad[..., None, None, None], None, None, None, None, None, None


class _FlatOptionsLoss(torch.autograd.Function):
    """The loss by a kernel, which also pads and masks."""

    @staticmethod
    def forward(
        ctx: Any,
        flat: Tensor,
        layout: Layout,
        legal: Tensor | None,
        taken: Tensor,
        log_prob: Tensor,
        advantage: Tensor,
        share: Tensor,
        old_log_probs: Tensor | None,
        clip: Tensor,
        entropy_coef: Tensor,
        kl_coef: Tensor,
    ) -> tuple[Tensor, ...]:
        from headwise.algorithms.kernels.options_loss import judge

        flat, device = flat.contiguous(), flat.device
        (rows, heads), options, members = taken.shape[-2:], layout.max_options, clip.numel()
        width = max(1 << (options - 1).bit_length(), 2)
        lanes = _AT_ONCE // width
        parts, each = parts_of(rows * heads, lanes, _BLOCKS)
        log_probs = torch.empty((*taken.shape, options), device=device)
        by_head = torch.empty((2, *taken.shape), device=device)
        sums = torch.empty((4, members, parts), device=device)
        to_flat = torch.empty_like(flat)
        judge[(members, parts)](
            flat, layout.bounds,
            flat if legal is None else legal.contiguous().view(torch.uint8),
            taken.contiguous(), log_prob.contiguous(), advantage.contiguous(), share.contiguous(),
            flat if old_log_probs is None else old_log_probs.contiguous(),
            clip, entropy_coef, kl_coef, log_probs, *by_head.unbind(0), sums, to_flat,
            rows, heads, flat.shape[-1], options, advantage.shape[-1],
            int(advantage.shape[-1] > 1), each,
            LEGAL=legal is not None, OLD=old_log_probs is not None, LANES=lanes, OPTIONS=width,
            num_warps=8,
        )  # fmt: skip
        ctx.save_for_backward(to_flat)
        ctx.set_materialize_grads(False)  # of what no gradient flows through
        loss, *numbers = (sums.squeeze(-1) if parts == 1 else sums.sum(-1)).unbind(0)
        rest = (*numbers, *by_head.unbind(0), log_probs)
        ctx.mark_non_differentiable(*rest)
        return loss, *rest

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        (to_flat,) = ctx.saved_tensors
        return to_flat * grad[..., None, None], *[None] * 10
