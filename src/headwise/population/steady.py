"""Functions that round the same wherever a number stands in memory.

A vectorised kernel treats the last few numbers of a tensor by another routine than the rest. For
most functions both round alike; for `softplus`, `elu`, `sigmoid` and `pow` they do not (torch
2.13), so a member's result would depend on who its neighbours are. These are made of parts that do.
`tanh` is here for another reason: torch's own is exact to the last bit, and slow for it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent, to 2e-7; on the CPU by the compiled module."""
    if x.device.type != "cpu" or x.dtype != torch.float32 or torch.compiler.is_compiling():
        return torch.tanh(x)
    if torch.is_grad_enabled() and x.requires_grad:
        out: Tensor = _Tanh.apply(x)  # type: ignore[no-untyped-call]
        return out
    return _compiled_tanh(x)


def _compiled_tanh(x: Tensor) -> Tensor:
    from headwise import _core

    x = x.detach().contiguous()
    out = torch.empty_like(x)
    _core.tanh(x.view(-1).numpy(), out.view(-1).numpy())
    return out


class _Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        out = _compiled_tanh(x)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (out,) = ctx.saved_tensors
        slope: Tensor = torch.ops.aten.tanh_backward(grad, out)
        return slope


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
