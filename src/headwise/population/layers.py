"""Layers whose parameters have a member axis first: one kernel serves the whole population.

Parameters are (P, *copies, in, out). Copies are networks that a member has several of, such as one
for each head or a pair of twin critics; they are one more stacked axis, not a Python loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from headwise.population import bf16
from headwise.population.bf16_network import Piece, through
from headwise.population.keys import Keys, Stream, to_normal
from headwise.population.packing import gradients_go_straight
from headwise.population.steady import elu, tanh_

Activation: TypeAlias = Literal["relu", "tanh", "elu"]
Copy: TypeAlias = int | tuple[int, ...]
"""Which of the networks that a member has several of."""

_BLOCK, _ROWS, _COLUMNS = 1024, 128, 16  # of the kernels
_NARROW = 16
"""Fewer columns than that are slow on the CPU, unless they are rows of the transposed product."""


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
        return self.first(self.out_features, x, then)

    def first(self, count: int, x: Tensor, then: Activation | None = None) -> Tensor:
        """The first `count` outputs alone: (P, *copies, B, in) to (P, *copies, B, count)."""
        if bf16.fits(x):
            return through(x, (), [self.piece(then, columns=(0, count))])[0]
        stack = x.shape[:-2]
        if len(stack) > 1:
            x = x.flatten(0, -3)
            if x.device.type != "cuda":
                # One input for several copies may have no strides of its own; see _Affine.
                x = x.contiguous()

        out = _affine(x, self.part(count), then)
        return out.view(*stack, *out.shape[-2:])

    def one(self, copy: Copy, x: Tensor, then: Activation | None = None) -> Tensor:
        """`forward` of one of the copies alone: (P, B, in) to (P, B, out)."""
        if bf16.fits(x):
            return through(x, (), [self.piece(then, copy)])[0]
        return _affine(x, self.part_of(copy), then)

    def piece(
        self,
        then: Activation | None = None,
        copy: Copy | None = None,
        *,
        columns: tuple[int, int] | None = None,
        reads: int = 0,
    ) -> Piece:
        """The layer, or some of it, as a part of a network that is one call; see `at_once`."""
        number = None
        if copy is not None:
            number = 0
            copies = self.weight.shape[1:-2]
            for at, size in zip(copy if isinstance(copy, tuple) else (copy,), copies, strict=True):
                number = number * size + at
        return Piece(self.weight, self.bias, then, number, columns, reads)

    def part(self, count: int | None = None) -> Part:
        """All copies' parameters, or those of the first `count` outputs."""

        def cut(parameter: Tensor) -> Tensor:
            if count is not None and count < self.out_features:
                parameter = parameter.narrow(-1, 0, count)
            return parameter.flatten(0, -3)

        return self._part(cut)

    def part_of(self, copy: Copy) -> Part:
        """The parameters of one of the copies."""

        def select(parameter: Tensor) -> Tensor:
            for number in copy if isinstance(copy, tuple) else (copy,):
                parameter = parameter.select(1, number)  # the copies' axes follow the member's
            return parameter

        return self._part(select)

    def _part(self, cut: Callable[[Tensor], Tensor]) -> Part:
        """The part of the parameters that a call needs, and where their gradients are added up."""
        weight, bias = cut(self.weight), cut(self.bias)
        to_weight = to_bias = None
        if gradients_go_straight() and self.weight.grad is not None and self.bias.grad is not None:
            to_weight, to_bias = cut(self.weight.grad), cut(self.bias.grad)
        return Part(weight, bias, to_weight, to_bias)

    def extra_repr(self) -> str:
        """The sizes, for printing."""
        return f"{self.in_features} -> {self.out_features}, stack {tuple(self.weight.shape[:-2])}"


class Part(NamedTuple):
    """Matrices (N, in, out) and biases (N, 1, out), and their gradients where they are known."""

    weight: Tensor
    bias: Tensor
    to_weight: Tensor | None
    to_bias: Tensor | None


def _affine(x: Tensor, part: Part, then: Activation | None) -> Tensor:
    """X W + b for a stack of matrices, and an activation."""
    if not torch.is_grad_enabled():
        return _forward(x, part.weight, part.bias, then)
    out: Tensor = _Affine.apply(x, *part, then)  # type: ignore[no-untyped-call]
    return out


def _forward(x: Tensor, weight: Tensor, bias: Tensor, then: Activation | None) -> Tensor:
    if x.device.type == "cuda":
        return _forward_kernels(x, weight, bias, then)
    # A product with a single column is another routine for one matrix than for many; a sum along
    # the row is the same for all.
    if weight.shape[-1] == 1:
        out = (x * weight.transpose(-1, -2)).sum(-1, keepdim=True) + bias
    elif weight.shape[-1] < _NARROW:
        across = (y.transpose(-1, -2) for y in (bias, weight, x))
        out = torch.baddbmm(*across).transpose(-1, -2).contiguous()
    else:
        out = torch.baddbmm(bias, x, weight)
    if then is None:
        return out
    if then == "elu":
        return elu(out)
    return tanh_(out) if then == "tanh" else torch.relu_(out)


def _forward_kernels(x: Tensor, weight: Tensor, bias: Tensor, then: Activation | None) -> Tensor:
    from headwise.population.kernels.affine import add_bias

    out = torch.bmm(x, weight)
    copies, rows, width = out.shape
    grid = (copies, -(-rows * width // _BLOCK))
    add_bias[grid](out, bias, bias.stride(0), rows, width, THEN=then or "none", BLOCK=_BLOCK)
    return out


def _slope(grad: Tensor, out: Tensor, then: Activation | None) -> Tensor:
    """The gradient before the activation, from the one behind it and the activated numbers."""
    if then is None:
        return grad
    if then == "elu":
        return grad * (out.clamp_max(0.0) + 1.0)
    if then == "tanh":
        return torch.ops.aten.tanh_backward(grad, out)  # type: ignore[no-any-return]
    return torch.ops.aten.threshold_backward(grad, out, 0)  # type: ignore[no-any-return]


def _back_kernels(
    grad: Tensor, out: Tensor, to_bias: Tensor | None, then: Activation | None
) -> Tensor:
    """`_slope` as a kernel that also adds the sum over rows to the gradient of the bias."""
    from headwise.population.kernels.affine import go_back

    copies, rows, width = out.shape
    before = grad if then is None else torch.empty_like(out)
    if then is None and to_bias is None:
        return grad
    where = before if to_bias is None else to_bias
    go_back[(copies, -(-width // _COLUMNS))](
        grad, out, before, where, where.stride(0), rows, width,
        THEN=then or "none", BIAS=to_bias is not None, ROWS=_ROWS, COLUMNS=_COLUMNS,
        num_warps=8,
    )  # fmt: skip
    return before


class _Affine(torch.autograd.Function):
    """x W + b and an activation; it rounds the same for one matrix as for a stack of them.

    Left to itself, autograd hands on gradients with whatever strides it finds. For one member they
    may be others than for many, and the routine for other strides rounds differently; so gradients
    are made contiguous. Both steps are one function because small networks spend much of their time
    between functions.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        to_weight: Tensor | None,
        to_bias: Tensor | None,
        then: Activation | None,
    ) -> Tensor:
        out = _forward(x, weight, bias, then)
        ctx.save_for_backward(x, weight, out)
        ctx.then, ctx.to_weight, ctx.to_bias = then, to_weight, to_bias
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, out = ctx.saved_tensors
        need_x, need_weight, need_bias = ctx.needs_input_grad[:3]
        grad = grad.contiguous()
        for_bias: Tensor | None = None
        if grad.device.type == "cuda" and ctx.to_weight is not None:
            grad = _back_kernels(grad, out, ctx.to_bias if need_bias else None, ctx.then)
        else:
            grad = _slope(grad, out, ctx.then)
            for_bias = grad.sum(-2, keepdim=True) if need_bias else None
        single = weight.shape[-1] == 1 and grad.device.type != "cuda"
        narrow = weight.shape[-1] < _NARROW and grad.device.type == "cpu"
        to_x = None
        if need_x:
            across = weight.transpose(-1, -2)
            to_x = grad * across if single else torch.bmm(grad, across)
        for_weight: Tensor | None = None
        if need_weight and single:
            for_weight = (x * grad).sum(-2).unsqueeze(-1)
        elif need_weight and narrow:
            for_weight = torch.bmm(grad.transpose(-1, -2), x).transpose(-1, -2)
        elif need_weight and ctx.to_weight is not None:
            ctx.to_weight.baddbmm_(x.transpose(-1, -2), grad)
        elif need_weight:
            for_weight = torch.bmm(x.transpose(-1, -2), grad)
        if ctx.to_weight is not None:
            if for_weight is not None:
                ctx.to_weight.add_(for_weight)
            if for_bias is not None:
                ctx.to_bias.add_(for_bias)
            for_weight = for_bias = None
        return to_x, for_weight, for_bias, None, None, None


class LayerNorm(nn.Module):
    """Stacked `nn.LayerNorm` over the last dimension, with its own scale and shift per member."""

    def __init__(
        self, init: Initializer, features: int, *, copies: tuple[int, ...] = (), eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.eps = eps
        shape = (init.keys.num_members, *copies, 1, features)
        self.weight = nn.Parameter(torch.ones(shape, device=init.keys.home))
        self.bias = nn.Parameter(torch.zeros(shape, device=init.keys.home))

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
