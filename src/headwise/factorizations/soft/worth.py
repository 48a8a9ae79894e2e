"""What states are worth to SAC: the lesser of twin critics, and randomness at its temperature."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.factorizations.parts.join import dense_rows
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.options_compiled import (
    is_compiled,
    lesser_worth,
    lesser_worth_back,
)
from headwise.factorizations.soft.base import temperatures_of
from headwise.population.warps import warps_for

_BLOCK, _ROWS, _MOST_AT_ONCE = 256, 64, 4096  # of the kernels


def lesser(values: Tensor) -> Tensor:
    """The less hopeful of twin values (P, 2, B, G)."""
    if values.device.type == "cuda" or is_compiled(values):
        return _worth(values, None, None)
    return values.min(-3).values


def worth(values: Tensor, entropy: Tensor, alpha: Tensor) -> Tensor:
    """The less hopeful of twin values (P, 2, B, 1), plus temperatures (P, H) times entropies.

    Args:
        values: What both critics say.
        entropy: Of each head, (P, B, H).
        alpha: The temperatures.
    """
    if values.device.type == "cuda" or is_compiled(values):
        return _worth(values, entropy, alpha)
    return lesser(values) + (alpha.unsqueeze(-2) * entropy).sum(-1, keepdim=True)


def worth_each(values: Tensor, entropy: Tensor, alpha: Tensor, heads: Tensor) -> Tensor:
    """`worth` for heads that have critics of their own, (P, B, N).

    Args:
        values: What both critics of each head say, (P, 2, N, B).
        entropy: Of each of these heads, (P, B, N).
        alpha: One temperature for each head of each member, (P, H).
        heads: Which heads these are, (N,).
    """
    if values.device.type == "cuda":
        out: Tensor = _WorthEach.apply(  # type: ignore[no-untyped-call]
            values, entropy, alpha, heads
        )
        return out
    return lesser(values.transpose(-1, -2)) + temperatures_of(alpha, heads) * entropy


def can_branch(layout: Layout, x: Tensor) -> bool:
    """Whether `soft_branches` can take these heads, where x is."""
    few = layout.mask.numel() <= _MOST_AT_ONCE
    return few and x.device.type == "cuda" and not layout.is_conditional


def soft_branches(
    layout: Layout,
    flat: Tensor,
    value: Tensor,
    of_ranges: Tensor | None,
    alpha: Tensor,
    *,
    stacked: bool = False,
) -> tuple[Tensor, Tensor]:
    """The soft value in closed form (P, B, 1), and the entropies of all heads (P, B, H).

    The value is the lesser critic's V plus every Choice's t log sum exp(A / t), plus t times every
    Range's entropy. Entropies of options are the first critic's; no gradient flows through them.

    Args:
        layout: The heads, none of them under a condition.
        flat: Advantages of all options, (P, 2, B, total), or (P, 2, D, B, K) where every head has a
            network of its own; they need not be centred.
        value: V, (P, 2, B).
        of_ranges: Entropies of Range heads, (P, B, C), if there are any.
        alpha: One temperature for each head of each member, (P, H).
        stacked: Whether every head has a network of its own.
    """
    if of_ranges is None:
        of_ranges = flat.new_empty((flat.shape[0], flat.shape[-2], 0))
    found: tuple[Tensor, Tensor] = _SoftBranches.apply(  # type: ignore[no-untyped-call]
        flat, value, of_ranges, alpha, layout, stacked
    )
    return found


def draw_branches(
    layout: Layout,
    flat: Tensor,
    alpha: Tensor,
    uniform: Tensor,
    numbers: Tensor | None,
    *,
    stacked: bool = False,
) -> Tensor:
    """Actions (P, B, H) with options drawn from the first critic's softmax(A / t), as one kernel.

    Args:
        layout: The heads, none of them under a condition, or with more than `FEW` options.
        flat: Advantages of all options, (P, 2, B, total) or (P, 2, D, B, K), as above.
        alpha: One temperature for each head of each member, (P, H).
        uniform: Uniform numbers (P, B, D or more).
        numbers: Those of the Range heads, (P, B, C), if there are any.
        stacked: Whether every head has a network of its own.
    """
    from headwise.factorizations.kernels.worth import draw_branches as kernel

    flat, uniform = flat.contiguous(), dense_rows(uniform)
    numbers = uniform if numbers is None else dense_rows(numbers)
    members, (rows, width) = flat.shape[0], flat.shape[-2:]
    out = torch.empty(members, rows, layout.num_heads, device=flat.device)
    kernel[(-(-members * rows // _ROWS), layout.num_heads)](
        flat, alpha.contiguous(), uniform, numbers, layout.bounds, layout.choices, layout.ranges,
        out, uniform.stride(-2), numbers.stride(-2), members * rows, rows, width,
        layout.num_choices, layout.num_ranges, STACKED=stacked, ROWS=_ROWS,
    )  # fmt: skip
    return out


class OfNetworks(NamedTuple):
    """What networks of every head say; None where there are no such heads, or nobody asks."""

    advantage: Tensor | None
    """Of the options, (P, 2, D, B, K)."""
    value: Tensor | None
    """V of the Choice heads, (P, 2, D, B)."""
    numbers: Tensor | None
    """Q of the numbers drawn, (P, 2, C, B)."""


def soft_each(
    layout: Layout, said: OfNetworks, of_ranges: Tensor | None, alpha: Tensor, *, values: bool
) -> tuple[Tensor, Tensor]:
    """Every head's own soft value and entropy (P, B, H), as one kernel without gradients.

    Args:
        layout: The heads, none of them under a condition.
        said: What the critics say.
        of_ranges: Entropies of Range heads, (P, B, C), if there are any.
        alpha: One temperature for each head of each member, (P, H).
        values: Whether values are asked for; without, the first are arbitrary.
    """
    from headwise.factorizations.kernels.worth import soft_each as kernel

    known = [x for x in (said.advantage, of_ranges) if x is not None]
    rows, width = known[0].shape[-2:]
    given = [alpha if x is None else x.detach().contiguous() for x in (*said, of_ranges)]
    shape = (2, alpha.shape[0], rows, layout.num_heads)
    total, entropy = torch.empty(shape, device=alpha.device).unbind(0)
    kernel[(-(-shape[1] * rows // _ROWS), layout.num_heads)](
        *given,  # what is not there is not read
        alpha.contiguous(), layout.bounds, layout.choices, layout.ranges, total, entropy,
        shape[1] * rows, rows, width, layout.num_choices, layout.num_ranges,
        VALUES=values, ROWS=_ROWS,
    )  # fmt: skip
    return total, entropy


def _worth(values: Tensor, entropy: Tensor | None, alpha: Tensor | None) -> Tensor:
    out: Tensor = _Worth.apply(values, entropy, alpha)  # type: ignore[no-untyped-call]
    return out


class _Worth(torch.autograd.Function):
    """One kernel, and one on the way back; of equal values the first is the lesser."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, entropy: Tensor | None, alpha: Tensor | None) -> Tensor:
        members, _, *rest = values.shape
        values = values.contiguous()
        out, which = torch.empty((2, members, *rest), device=values.device).unbind(0)
        heads = 0 if alpha is None else alpha.shape[-1]
        ctx.sizes, ctx.grid = (out.numel(), out.numel() // members, heads), _grid(out)
        if values.device.type == "cpu":
            alpha = values.new_empty((members, 0)) if alpha is None else alpha.contiguous()
            lesser_worth(values, entropy, alpha, out, which)
        else:
            from headwise.factorizations.kernels.worth import worth as kernel

            alpha = values if alpha is None else alpha.contiguous()  # what is not there is not read
            entropy = values if entropy is None else entropy.contiguous()
            kernel[ctx.grid](
                values, entropy, alpha, out, which, *ctx.sizes, HEADS=heads > 0, BLOCK=_BLOCK
            )
        ctx.save_for_backward(alpha, which)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        (alpha, which), heads = ctx.saved_tensors, ctx.sizes[-1]
        members, *rest = which.shape
        to_values = torch.empty((members, 2, *rest), device=grad.device)
        to_entropy = torch.empty((*which.shape[:-1], heads), device=grad.device)
        if grad.device.type == "cpu":
            lesser_worth_back(grad, alpha, which, to_values, to_entropy)
        else:
            from headwise.factorizations.kernels.worth import worth_back

            worth_back[ctx.grid](
                grad.contiguous(), alpha, which, to_values, to_entropy, *ctx.sizes,
                HEADS=heads > 0, BLOCK=_BLOCK,
            )  # fmt: skip
        return to_values, to_entropy if heads else None, None


class _SoftBranches(torch.autograd.Function):
    """One kernel, and one on the way back; of equally good options the first is the best."""

    @staticmethod
    def forward(
        ctx: Any, flat: Tensor, value: Tensor, of_ranges: Tensor, alpha: Tensor, layout: Layout,
        stacked: bool,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        from headwise.factorizations.kernels.worth import soft_branches as kernel

        flat, value, alpha = flat.contiguous(), value.contiguous(), alpha.contiguous()
        members, (rows, width) = flat.shape[0], flat.shape[-2:]
        total = torch.empty(members, rows, 1, device=flat.device)
        entropy = torch.empty(members, rows, layout.num_heads, device=flat.device)
        which = torch.empty(members, rows, dtype=torch.int32, device=flat.device)
        ctx.tables = layout.bounds, layout.choices, layout.ranges
        ctx.sizes = rows, width, layout.num_choices, layout.num_ranges
        heads = 1 << (layout.num_choices - 1).bit_length()
        most = 1 << (layout.max_options - 1).bit_length()
        ctx.blocks = {
            "STACKED": stacked,
            "HEADS": heads,
            "MOST": most,
            "RANGES": 1 << (max(layout.num_ranges, 1) - 1).bit_length(),
            "num_warps": warps_for(heads * most),
        }
        kernel[(members * rows,)](
            flat, value, alpha, of_ranges.contiguous(), *ctx.tables, total, entropy, which,
            *ctx.sizes, **ctx.blocks,
        )  # fmt: skip
        ctx.save_for_backward(flat, alpha, which)
        ctx.mark_non_differentiable(entropy)
        ctx.set_materialize_grads(False)  # zeros for the entropies would be a kernel
        return total, entropy

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
        from headwise.factorizations.kernels.worth import soft_branches_back

        flat, alpha, which = ctx.saved_tensors
        to_flat = torch.empty_like(flat)
        members, rows = which.shape
        to_value = torch.empty(members, 2, rows, device=flat.device)
        to_ranges = torch.empty((*which.shape, ctx.sizes[-1]), device=flat.device)
        soft_branches_back[(which.numel(),)](
            grad.contiguous(), flat, alpha, which, *ctx.tables, to_flat, to_value, to_ranges,
            *ctx.sizes, **ctx.blocks,
        )  # fmt: skip
        return to_flat, to_value, to_ranges, None, None, None


class _WorthEach(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, entropy: Tensor, alpha: Tensor, heads: Tensor) -> Tensor:
        from headwise.factorizations.kernels.worth import worth_each as kernel

        values, alpha = values.contiguous(), alpha.contiguous()
        out, which = torch.empty((2, *entropy.shape), device=values.device).unbind(0)
        rows, columns = entropy.shape[-2:]
        ctx.sizes, ctx.grid = (out.numel(), rows, columns, alpha.shape[-1]), _grid(out)
        kernel[ctx.grid](
            values, entropy.contiguous(), alpha, heads, out, which, *ctx.sizes, BLOCK=_BLOCK
        )
        ctx.save_for_backward(alpha, heads, which)
        ctx.shape = values.shape
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        from headwise.factorizations.kernels.worth import worth_each_back

        to_values = torch.empty(ctx.shape, device=grad.device)
        to_entropy = torch.empty(grad.shape, device=grad.device)
        worth_each_back[ctx.grid](
            grad.contiguous(), *ctx.saved_tensors, to_values, to_entropy, *ctx.sizes, BLOCK=_BLOCK
        )
        return to_values, to_entropy, None, None


def _grid(out: Tensor) -> tuple[int]:
    return (-(-out.numel() // _BLOCK),)
