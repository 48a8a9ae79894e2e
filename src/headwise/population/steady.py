"""Functions that round the same wherever a number stands in memory.

A vectorised kernel treats the last few numbers of a tensor by another routine than the rest. For
most functions both round alike; for `softplus`, `elu`, `sigmoid` and `pow` they do not (torch
2.13), so a member's result would depend on who its neighbours are. These are made of parts that do.
`tanh_` is here for another reason: torch's own is exact to the last bit, and slow for it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def tanh_(x: Tensor) -> Tensor:
    """The hyperbolic tangent in place, to 2e-7; on the CPU by the compiled module. No gradient."""
    if x.device.type != "cpu" or x.dtype != torch.float32 or torch.compiler.is_compiling():
        return torch.tanh_(x)
    from headwise import _core

    flat = x.detach().view(-1).numpy()
    _core.tanh(flat, flat)
    return x


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x))."""
    return x.clamp_min(0.0) + torch.log1p(torch.exp(-x.abs()))


def elu(x: Tensor) -> Tensor:
    """X above zero, exp(x) - 1 below."""
    out: Tensor = _Elu.apply(x)  # type: ignore[no-untyped-call]
    return out


class _Elu(torch.autograd.Function):
    """Its slope is 1 above zero and exp(x) = out + 1 below: three operations instead of seven."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        out = x.clamp_min(0.0) + torch.expm1(x.clamp_max(0.0))
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (out,) = ctx.saved_tensors
        return grad * (out.clamp_max(0.0) + 1.0)  # type: ignore[no-any-return]


def power(x: Tensor, exponent: float | Tensor) -> Tensor:
    """Positive numbers to a power."""
    return (x.log() * exponent).exp()
