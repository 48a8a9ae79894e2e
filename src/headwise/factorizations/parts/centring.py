"""Chosen advantages minus their head's best or mean, as one kernel, and one on the way back.

In tensor operations that is a dozen kernels each way; `values.py` and `critics.py` have them, for
the CPU and as oracles.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.factorizations.parts.layout import Layout
from headwise.population import even_rows

_MOST_AT_ONCE = 4096
_LANES = 512  # options, of all heads and some rows, that a program takes at least


def fits(layout: Layout, numbers: Tensor) -> bool:
    """Whether the kernels here can take advantages of these heads."""
    return numbers.device.type == "cuda" and layout.mask.numel() <= _MOST_AT_ONCE


class Given(NamedTuple):
    """What chosen advantages depend on besides the networks' outputs. Nothing here has gradients.

    Rows (...) are (P, B), or (P, 2, B) where there are twins.
    """

    layout: Layout
    taken: Tensor
    """The options chosen, (..., D), of any type."""
    stacked: bool = False
    """Whether heads have networks of their own: advantages are (P, D, B, K), not (..., total)."""
    sums: bool = False
    """Whether the heads' advantages are added up, (..., 1), or one each, (..., D)."""
    masses: Tensor | None = None
    """The chances of options (..., D, K) whose mean is taken off; None takes the largest off."""
    in_use: Tensor | None = None
    """Ones and zeros by which advantages are multiplied, (..., D)."""
    legal: Tensor | None = None
    """Which options may be chosen, broadcast to (..., D, K)."""


def centred(value: Tensor | None, advantage: Tensor, given: Given) -> Tensor:
    """V, if there is one, plus the centred advantages of the options chosen.

    Args:
        value: V (...), or each head's own (P, D, B) where networks are stacked and not added up.
        advantage: Of all options, as the networks give them.
        given: The rest.
    """
    found: Tensor = _Centred.apply(value, advantage, given)  # type: ignore[no-untyped-call]
    return found


class _Centred(torch.autograd.Function):
    """Of equally good options the first is best."""

    @staticmethod
    def forward(ctx: Any, value: Tensor | None, advantage: Tensor, given: Given) -> Tensor:
        from headwise.factorizations.kernels.values import centre

        layout = given.layout
        advantage = advantage.contiguous()
        taken, stack = _in_rows(given.taken), given.taken.shape[:-1]
        heads, rows = layout.num_choices, stack.numel()
        legal, legal_row = _mask(given.legal, stack, layout)
        masses, in_use = (  # what there is none of, the kernels do not look at
            layout.bounds if x is None else x.contiguous() for x in (given.masses, given.in_use)
        )
        out = torch.empty(*stack, 1 if given.sums else heads, device=advantage.device)
        best = taken
        if given.masses is None:
            best = torch.empty(*stack, heads, dtype=torch.int32, device=advantage.device)
        kind = "none"
        if value is not None:
            kind = "own" if given.stacked and not given.sums else "shared"
        ctx.tensors = (taken, masses, in_use, legal, best, layout.bounds)
        ctx.sizes = (
            rows, taken.stride(-2), legal_row, stack[-1], advantage.shape[-1], heads,
            layout.max_options,
        )  # fmt: skip
        ctx.flags = {
            "STACKED": given.stacked,
            "MEAN": given.masses is not None,
            "LEGAL": given.legal is not None,
            "IN_USE": given.in_use is not None,
            "VALUE": kind,
            "SUMS": given.sums,
        } | _blocks(heads, layout.max_options)
        ctx.grid, ctx.shape = (-(-rows // ctx.flags["ROWS"]),), advantage.shape
        ctx.value_shape = None if value is None else value.shape
        where = advantage if value is None else value.contiguous()
        centre[ctx.grid](
            advantage, where, taken, masses, in_use, legal, layout.bounds, out, best,
            *ctx.sizes, **ctx.flags,
        )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, None]:
        from headwise.factorizations.kernels.values import centre_back

        grad = grad.contiguous()
        to_flat = torch.empty(ctx.shape, device=grad.device)
        to_value, where = None, grad
        if ctx.value_shape is not None and ctx.flags["SUMS"]:
            to_value = grad.view(ctx.value_shape)
        elif ctx.value_shape is not None:
            to_value = where = torch.empty(ctx.value_shape, device=grad.device)
        centre_back[ctx.grid](grad, *ctx.tensors, to_flat, where, *ctx.sizes, **ctx.flags)
        return to_value, to_flat, None


def best_of_all(
    layout: Layout, advantage: Tensor, legal: Tensor | None, *, stacked: bool
) -> Tensor:
    """Each head's best option, (..., D), from what the networks give; see `Given`."""
    stack = advantage.shape[:-1]
    if stacked:
        stack = torch.Size((*stack[:-2], stack[-1]))
    out = torch.empty(*stack, layout.num_choices, device=advantage.device)
    _best(advantage, _mask(legal, stack, layout), layout.bounds, out, layout, stacked=stacked)
    return out


def best_of_one(
    layout: Layout, head: int, advantage: Tensor, legal: Tensor | None, action: Tensor
) -> Tensor:
    """Writes the best option of one head into actions (..., D), from its advantages (..., K)."""
    mine = None if legal is None else legal[..., head : head + 1, :]
    mask = _mask(mine, advantage.shape[:-1], layout)
    column = action[..., head : head + 1]
    _best(advantage, mask, layout.bounds[head:], column, layout, stacked=True)
    return action


def _best(
    advantage: Tensor,
    mask: tuple[Tensor, int],
    bounds: Tensor,
    out: Tensor,
    layout: Layout,
    *,
    stacked: bool,
) -> None:
    from headwise.factorizations.kernels.values import best_options

    advantage, (legal, legal_row), heads = advantage.contiguous(), mask, out.shape[-1]
    rows, blocks = out[..., 0].numel(), _blocks(heads, layout.max_options)
    best_options[(-(-rows // blocks["ROWS"]),)](
        advantage, legal, bounds, out, rows, out.stride(-2), legal_row, out.shape[-2],
        advantage.shape[-1], heads, layout.max_options,
        STACKED=stacked, LEGAL=legal.dtype == torch.bool, **blocks,
    )  # fmt: skip


def _blocks(heads: int, most: int) -> dict[str, int]:
    """What a kernel is compiled for: so many rows a program that its threads are not idle."""
    a_row = {"HEADS": 1 << (heads - 1).bit_length(), "OPTIONS": 1 << (most - 1).bit_length()}
    rows = max(_LANES // math.prod(a_row.values()), 1)
    return {"ROWS": rows, **a_row}


def _in_rows(x: Tensor) -> Tensor:
    """The same numbers (..., N), N of them next to each other and all rows equally far apart."""
    x = even_rows(x)
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _mask(legal: Tensor | None, stack: torch.Size, layout: Layout) -> tuple[Tensor, int]:
    """Which options are legal, and how far apart rows of them are; without, any tensor will do."""
    if legal is None:
        return layout.bounds, 0
    rows = _in_rows(legal.expand(*stack, *legal.shape[-2:]).flatten(-2))
    return rows, rows.stride(-2)
