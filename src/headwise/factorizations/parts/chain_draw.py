"""Drawing one head of a chain after the other, each as one kernel: on a GPU.

Actions and entropies so far are (P, B, H), and what is not yet drawn in them is arbitrary. Where
gradients flow, a step makes new ones, and their gradients go back through the steps as they are:
no step takes the gradient of a head that was drawn after it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.factorizations.parts.join import dense_rows
from headwise.factorizations.parts.layout import Layout

_ROWS = 64  # of the kernels: rows at a time


class Sampled(NamedTuple):
    """Actions sampled so far, each (P, B, H)."""

    unit: Tensor
    """In the learner's form."""
    raw: Tensor
    """As they are judged."""
    log_prob: Tensor
    """The log-probability or log-density of each head."""


def draw_number(
    so_far: tuple[Tensor, Tensor],
    head: int,
    outputs: Tensor,
    uniform: Tensor,
    column: int,
    bounds: tuple[float, float],
) -> tuple[Tensor, Tensor]:
    """Actions and entropies with one more Range, a squashed Gaussian whose spread is an output.

    The ones given are not to be used again: without gradients they are overwritten.

    Args:
        so_far: Actions in the learner's form, and minus the log-densities of their numbers.
        head: Which head of the action.
        outputs: Mean and free spread (P, B, 2 or more), from the head's network.
        uniform: Uniform numbers, (P, B, column + 1 or more).
        column: Which of them to take.
        bounds: Of the logarithm of the standard deviation.
    """
    if torch.is_grad_enabled() and outputs.requires_grad:
        drawn: tuple[Tensor, Tensor] = _DrawNumber.apply(  # type: ignore[no-untyped-call]
            outputs, *so_far, uniform, head, column, bounds
        )
        return drawn
    _draw(outputs, uniform, so_far, so_far, outputs, (head, column), bounds)
    return so_far


def draw_option(
    layout: Layout, place: int, scores: Tensor, alpha: Tensor, uniform: Tensor, action: Tensor
) -> None:
    """Writes one Choice into actions (P, B, H) so far, drawn from softmax(scores / t).

    Args:
        layout: The heads.
        place: The place of the head among the Choices, and of its uniform number.
        scores: Of its options, (P, B, K).
        alpha: One temperature for each head of each member, (P, H).
        uniform: Uniform numbers, (P, B, D or more).
        action: What is written into.
    """
    _pick(layout, place, scores, alpha, uniform, (action, action, action))


def sample_option(
    layout: Layout, place: int, logits: Tensor, uniform: Tensor, so_far: Sampled
) -> None:
    """Writes one Choice into what was sampled so far, drawn by its logits (P, B, K or more)."""
    _pick(layout, place, logits, None, uniform, so_far)


def sample_number(
    head: int,
    outputs: Tensor,
    free: Tensor | None,
    uniform: Tensor,
    column: int,
    bounds: tuple[float, float],
    so_far: Sampled,
) -> None:
    """Writes one Range into what was sampled so far; no gradient flows.

    Args:
        head: Which head of the action.
        outputs: Its mean (P, B, 1 or more), and behind it the free spread if none is given.
        free: The free spread, (P, 1, 1), where it does not depend on the state.
        uniform: Uniform numbers, (P, B, column + 1 or more).
        column: Which of them to take.
        bounds: Of the logarithm of the standard deviation.
        so_far: What is written into.
    """
    from headwise.factorizations.kernels.chain_draw import sample_number as kernel

    outputs, uniform = outputs.contiguous(), dense_rows(uniform)
    size, rows, heads = so_far.raw[..., 0].numel(), *so_far.raw.shape[-2:]
    kernel[(-(-size // _ROWS),)](
        outputs, outputs if free is None else free, uniform, *so_far, uniform.stride(-2), size,
        rows, outputs.shape[-1], heads, head, column, 0 if free is None else free.stride(0),
        bounds[0], 0.5 * (bounds[1] - bounds[0]), FROM_STATE=free is None, ROWS=_ROWS,
    )  # fmt: skip


def _pick(
    layout: Layout, place: int, scores: Tensor, alpha: Tensor | None, uniform: Tensor,
    into: tuple[Tensor, Tensor, Tensor],
) -> None:  # fmt: skip
    from headwise.factorizations.kernels.chain_draw import draw_option as kernel

    scores, uniform, head = scores.contiguous(), dense_rows(uniform), list(layout.choice_of)[place]
    size, rows, heads = into[0][..., 0].numel(), *into[0].shape[-2:]
    kernel[(-(-size // _ROWS),)](
        scores, scores if alpha is None else alpha.contiguous(), uniform, *into,
        uniform.stride(-2), size, rows, scores.shape[-1], heads, head, place, layout.sizes[place],
        SCALED=alpha is not None, JUDGED=into[1] is not into[0], ROWS=_ROWS,
    )  # fmt: skip


def _draw(
    outputs: Tensor,
    uniform: Tensor,
    so_far: tuple[Tensor, Tensor],
    then: tuple[Tensor, Tensor],
    spread: Tensor,
    place: tuple[int, int],
    bounds: tuple[float, float],
) -> None:
    from headwise.factorizations.kernels.chain_draw import draw_number as kernel

    outputs, uniform, heads = outputs.contiguous(), dense_rows(uniform), then[0].shape[-1]
    size = outputs[..., 0].numel()
    kernel[(-(-size // _ROWS),)](
        outputs, uniform, *so_far, *then, spread, uniform.stride(-2), size, outputs.shape[-1],
        heads, *place, bounds[0], 0.5 * (bounds[1] - bounds[0]),
        COPY=then[0] is not so_far[0], ROWS=_ROWS,
    )  # fmt: skip


class _DrawNumber(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, outputs: Tensor, action: Tensor, entropy: Tensor, uniform: Tensor, head: int,
        column: int, bounds: tuple[float, float],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        outputs = outputs.contiguous()
        drawn, random = torch.empty((2, *action.shape), device=action.device).unbind(0)
        spread = torch.empty(action.shape[:-1], device=action.device)
        _draw(outputs, uniform, (action, entropy), (drawn, random), spread, (head, column), bounds)
        ctx.save_for_backward(outputs, drawn, spread)
        ctx.head, ctx.half = head, 0.5 * (bounds[1] - bounds[0])
        ctx.set_materialize_grads(False)
        return drawn, random

    @staticmethod
    def backward(
        ctx: Any, by_action: Tensor | None, by_entropy: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        from headwise.factorizations.kernels.chain_draw import draw_number_back

        outputs, action, spread = ctx.saved_tensors
        to_outputs = torch.empty_like(outputs)
        first, second = (  # what is not there is not read
            spread if by is None else by.contiguous() for by in (by_action, by_entropy)
        )
        draw_number_back[(-(-spread.numel() // _ROWS),)](
            outputs, action, spread, first, second, to_outputs, spread.numel(), outputs.shape[-1],
            action.shape[-1], ctx.head, ctx.half, UNIT=by_action is not None,
            ENTROPY=by_entropy is not None, ROWS=_ROWS,
        )  # fmt: skip
        return to_outputs, by_action, by_entropy, None, None, None, None
