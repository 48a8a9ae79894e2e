"""Layers whose parameters have a member axis first: one kernel serves the whole population.

Parameters are (P, *copies, in, out). Copies are networks that a member has several of, such as one
for each head or a pair of twin critics; they are one more stacked axis, not a Python loop.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from headwise.population.keys import Keys, Stream, to_normal
from headwise.population.steady import elu, tanh_

Activation: TypeAlias = Literal["relu", "tanh", "elu"]


class Initializer:
    """Numbers the layers of a network as they are made.

    The number is a layer's address in the INIT stream: two networks built in the same order from
    the same seeds begin equal, and no two layers of a network begin alike.
    """

    def __init__(self, keys: Keys, first: int = 0) -> None:
        self.keys = keys
        self._next = first

    def uniform(self, *shape: int) -> Tensor:
        """Numbers in [0, 1) for the next layer, (P, *shape)."""
        self._next += 1
        return self.keys.uniform(Stream.INIT, self._next - 1, shape)


class Linear(nn.Module):
    """Stacked `nn.Linear`: (P, *copies, B, in) to (P, *copies, B, out).

    Args:
        init: Where the first values come from.
        in_features: Inputs.
        out_features: Outputs.
        copies: Sizes of the stacked axes between the member and the batch.
        gain: The gain of an orthogonal initialisation without bias; None takes nn.Linear's own,
            uniform within 1 / sqrt(in).
    """

    def __init__(
        self,
        init: Initializer,
        in_features: int,
        out_features: int,
        *,
        copies: tuple[int, ...] = (),
        gain: float | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        num_copies = math.prod(copies)
        shape = (init.keys.num_members, *copies)
        bound = 1.0 / math.sqrt(in_features)
        unit = init.uniform(num_copies, (in_features + 1) * out_features)
        weight, bias = unit[..., :-out_features], unit[..., -out_features:]
        if gain is not None:
            rows = to_normal(weight).reshape(*shape, in_features, out_features)
            weight, bias = gain * _orthogonal(rows), torch.zeros_like(bias)
        else:
            weight, bias = (weight * 2.0 - 1.0) * bound, (bias * 2.0 - 1.0) * bound
        self.weight = nn.Parameter(weight.reshape(*shape, in_features, out_features).contiguous())
        self.bias = nn.Parameter(bias.reshape(*shape, 1, out_features).contiguous())

    def forward(self, x: Tensor, then: Activation | None = None) -> Tensor:
        """(P, *copies, B, in) to (P, *copies, B, out), with an activation if one is named."""
        stack = x.shape[:-2]
        if len(stack) > 1:
            # One input for several copies may have no strides of its own; see _Affine.
            x = x.flatten(0, -3).contiguous()
        out = _affine(x, self.weight.flatten(0, -3), self.bias.flatten(0, -3), then)
        return out.view(*stack, *out.shape[-2:])

    def first(self, count: int, x: Tensor, then: Activation | None = None) -> Tensor:
        """The first `count` outputs alone: (P, B, in) to (P, B, count)."""
        weight, bias = (
            parameter.narrow(-1, 0, count).contiguous() for parameter in (self.weight, self.bias)
        )
        return _affine(x, weight, bias, then)

    def one(self, copy: int | tuple[int, ...], x: Tensor, then: Activation | None = None) -> Tensor:
        """The same for one of the copies alone: (P, B, in) to (P, B, out)."""
        numbers = copy if isinstance(copy, tuple) else (copy,)
        weight: Tensor = self.weight
        bias: Tensor = self.bias
        for number in numbers:  # the copies' axes follow the member's
            weight, bias = weight.select(1, number), bias.select(1, number)
        return _affine(x, weight, bias, then)

    def extra_repr(self) -> str:
        """The sizes, for printing."""
        return f"{self.in_features} -> {self.out_features}, stack {tuple(self.weight.shape[:-2])}"


def _affine(x: Tensor, weight: Tensor, bias: Tensor, then: Activation | None) -> Tensor:
    """X W + b for a stack of matrices, and an activation."""
    if not torch.is_grad_enabled():
        return _activated(_product(x, weight, bias), then)
    out: Tensor = _Affine.apply(x, weight, bias, then)  # type: ignore[no-untyped-call]
    return out


def _product(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    # A product with a single column is another routine for one matrix than for many; a sum along
    # the row is the same for all.
    if weight.shape[-1] == 1:
        return (x * weight.transpose(-1, -2)).sum(-1, keepdim=True) + bias
    return torch.baddbmm(bias, x, weight)


def _activated(out: Tensor, then: Activation | None) -> Tensor:
    """The activation of numbers that nobody else needs, so they may be overwritten."""
    if then is None:
        return out
    if then == "elu":
        return elu(out)
    return tanh_(out) if then == "tanh" else torch.relu_(out)


def _slope(grad: Tensor, out: Tensor, then: Activation | None) -> Tensor:
    """The gradient before the activation, from the one behind it and the activated numbers."""
    if then is None:
        return grad
    if then == "elu":
        return grad * (out.clamp_max(0.0) + 1.0)
    if then == "tanh":
        return torch.ops.aten.tanh_backward(grad, out)  # type: ignore[no-any-return]
    return torch.ops.aten.threshold_backward(grad, out, 0)  # type: ignore[no-any-return]


class _Affine(torch.autograd.Function):
    """x W + b and an activation; it rounds the same for one matrix as for a stack of them.

    Left to itself, autograd hands on gradients with whatever strides it finds. For one member they
    may be others than for many, and the routine for other strides rounds differently; so gradients
    are made contiguous. Both steps are one function because small networks spend much of their time
    between functions.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, then: Activation | None
    ) -> Tensor:
        out = _activated(_product(x, weight, bias), then)
        ctx.save_for_backward(x, weight, out)
        ctx.then = then
        return out

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        x, weight, out = ctx.saved_tensors
        need_x, need_weight, need_bias, _ = ctx.needs_input_grad
        grad = _slope(grad.contiguous(), out, ctx.then)
        to_x = to_weight = None
        if weight.shape[-1] == 1:
            to_x = grad * weight.transpose(-1, -2) if need_x else None
            to_weight = (x * grad).sum(-2).unsqueeze(-1) if need_weight else None
        else:
            to_x = torch.bmm(grad, weight.transpose(-1, -2)) if need_x else None
            to_weight = torch.bmm(x.transpose(-1, -2), grad) if need_weight else None
        return to_x, to_weight, grad.sum(-2, keepdim=True) if need_bias else None, None


class LayerNorm(nn.Module):
    """Stacked `nn.LayerNorm` over the last dimension, with its own scale and shift per member."""

    def __init__(
        self, init: Initializer, features: int, *, copies: tuple[int, ...] = (), eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.eps = eps
        shape = (init.keys.num_members, *copies, 1, features)
        self.weight = nn.Parameter(torch.ones(shape, device=init.keys.device))
        self.bias = nn.Parameter(torch.zeros(shape, device=init.keys.device))

    def forward(self, x: Tensor) -> Tensor:
        """Normalises the last dimension."""
        normal: Tensor = torch.nn.functional.layer_norm(x, x.shape[-1:], eps=self.eps)
        return normal * self.weight + self.bias


def _orthogonal(rows: Tensor) -> Tensor:
    """The orthogonal factor of each matrix (..., in, out), with the signs that make it uniform."""
    tall = rows if rows.shape[-2] >= rows.shape[-1] else rows.transpose(-1, -2)
    factors = torch.linalg.qr(tall)
    q: Tensor = factors.Q * torch.diagonal(factors.R, dim1=-2, dim2=-1).sign().unsqueeze(-2)
    return q if rows.shape[-2] >= rows.shape[-1] else q.transpose(-1, -2)
