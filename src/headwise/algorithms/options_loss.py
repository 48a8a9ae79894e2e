"""The loss of a policy whose heads are all Choices, with its gradient, by the compiled module.

One call does what the tensor operations of the PPO learner do in some seventy. Those are for other
policies and devices, and the oracle of this one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.factorizations.layout import Layout

_MOST_OPTIONS = 64
"""Options of a head that the compiled module has room for."""


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
    """Whether the compiled loss can do this action spec on this device."""
    plain = layout.num_ranges == 0 and not layout.is_conditional
    return plain and layout.max_options <= _MOST_OPTIONS and layout.device.type == "cpu"


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
