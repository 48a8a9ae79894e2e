"""Networks with products in bfloat16 on the CPU: one compiled call takes inputs through all layers.

Each of a stack of networks is worked on by one thread from its inputs to its outputs. What goes
from layer to layer then stays close to the processor and never becomes a tensor, and a member
rounds the same in any population. See `bf16` for what is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.population.bf16 import threads_now
from headwise.population.packing import gradients_go_straight
from headwise.population.steady import elu

_NARROW, _PANEL = 16, 32  # of the kernels: fewer outputs are not rounded; columns of a panel
_BYTES = 4
_THEN = {None: 0, "relu": 1, "tanh": 2, "elu": 3}


class Piece(NamedTuple):
    """A layer as a part of a network: all of it, or one of its copies, or some of its outputs."""

    weight: Tensor
    """The whole parameter, (P, *copies, in, out), however much of it is in use."""
    bias: Tensor
    """That of the biases, (P, *copies, 1, out)."""
    then: str | None = None
    """The activation: relu, tanh or none; that of a leaf may be elu."""
    copy: int | None = None
    """Which of the copies, counted through all their axes; None means all."""
    columns: tuple[int, int] | None = None
    """The first of the outputs, and how many; None means all."""
    reads: int = 0
    """The first column of what it reads."""

    @property
    def width(self) -> int:
        """How many outputs are in use."""
        return self.weight.size(-1) if self.columns is None else self.columns[1]


def fits_at_once(trunk: Sequence[Piece], leaves: Sequence[Piece]) -> bool:
    """Whether `through` can take inputs through these layers."""
    wide = all(piece.width >= _NARROW and piece.then in ("relu", "tanh") for piece in trunk)
    return wide and all(leaf.reads % _PANEL == 0 for leaf in leaves)


def through(
    x: Tensor, trunk: Sequence[Piece], leaves: Sequence[Piece], *, keep: bool = False
) -> tuple[Tensor, ...]:
    """Inputs (P, *copies, B, in) through a network: what comes out of each leaf, (..., B, out).

    That is the same, to the bit, as from layer after layer.

    Args:
        x: The inputs; (P, B, in) where all pieces are of one of the copies.
        trunk: Layers that each read all of what came out of the one before.
        leaves: Layers that read what came out of the trunk, each the columns that follow those of
            the one before. Without a trunk there is one, which reads the inputs.
        keep: Whether what came out of the trunk is returned as well. It passes no gradient on.
    """
    stack = x.shape[:-1]
    if x.dim() > 4:
        x = x.flatten(1, -3)
    x = x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()
    net = _Net(tuple(trunk), tuple(leaves), keep)
    if torch.is_grad_enabled():
        outs = _with_gradients(x, net)
    else:
        outs, _ = _go_through(x, net, learns=False, returns=False)
    if len(stack) > 3:
        outs = tuple(out.view(*stack, out.shape[-1]) for out in outs)
    return outs


class _Net(NamedTuple):
    trunk: tuple[Piece, ...]
    leaves: tuple[Piece, ...]
    keep: bool

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All layers."""
        return self.trunk + self.leaves

    @property
    def parameters(self) -> list[Tensor]:
        """Weights and biases, layer by layer."""
        return [parameter for piece in self.pieces for parameter in piece[:2]]


def _with_gradients(x: Tensor, net: _Net) -> tuple[Tensor, ...]:
    parameters = net.parameters
    needs = [parameter.requires_grad for parameter in parameters]
    straight = None
    if gradients_go_straight():
        found = [parameter.grad for parameter in parameters]
        if all(grad is not None and grad.is_contiguous() for grad in found):
            # Autograd has nothing to do with these; by one parameter it knows that there are some.
            straight, parameters = found, parameters[needs.index(True) :][:1] if any(needs) else []
    outs: tuple[Tensor, ...] = _Through.apply(  # type: ignore[no-untyped-call]
        x, net, needs, straight, *parameters
    )
    return outs


class _Through(torch.autograd.Function):
    """One compiled call each way."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        net: _Net,
        needs: list[bool],
        straight: list[Tensor] | None,
        *parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        returns = any(needs) or ctx.needs_input_grad[0]
        outs, inner = _go_through(x, net, learns=any(needs), returns=returns)
        ctx.net, ctx.needs, ctx.straight = net, needs, straight
        if net.keep:
            ctx.mark_non_differentiable(outs[-1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, inner, *outs)
        return outs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        from headwise import _core

        x, inner, *outs = ctx.saved_tensors
        net: _Net = ctx.net
        need_x, needs = ctx.needs_input_grad[0], ctx.needs
        to_x = x.new_empty(x.shape if need_x else 0)
        # Held until the call is over, which knows only where they are.
        of_leaves = [
            torch.zeros_like(out) if grad is None else grad.contiguous()
            for out, grad in zip(outs[: len(net.leaves)], grads, strict=False)
        ]
        found = ctx.straight or [
            torch.zeros_like(parameter) if need else None
            for parameter, need in zip(net.parameters, needs, strict=True)
        ]
        to = [g.data_ptr() if need else 0 for g, need in zip(found, needs, strict=True)]
        at = [0] * len(net.trunk) + [grad.data_ptr() for grad in of_leaves]
        networks, places = _count(x), _places(x, net, inner, outs, learns=any(needs))
        layers = [
            _layer(networks, piece, piece.then, places[i], at[i], to[2 * i], to[2 * i + 1])
            for i, piece in enumerate(net.pieces)
        ]
        _core.bf16_backward(
            networks,
            _inputs(x),
            layers[: len(net.trunk)],
            layers[len(net.trunk) :],
            to_x.data_ptr() if need_x else 0,
            threads_now(),
        )
        told = len(ctx.needs_input_grad) - 4
        by_parameters = [None] * told if ctx.straight else found
        return to_x if need_x else None, None, None, None, *by_parameters


def _go_through(
    x: Tensor, net: _Net, *, learns: bool, returns: bool
) -> tuple[tuple[Tensor, ...], Tensor]:
    """What comes out, and what is to be known of the trunk on the way back.

    Args:
        x: The inputs.
        net: The network.
        learns: Whether gradients of parameters will be wanted.
        returns: Whether any gradients will be.
    """
    from headwise import _core

    kept = net.trunk[-1:] if net.keep else ()
    outs = [x.new_empty(*x.shape[:-1], piece.width) for piece in (*net.leaves, *kept)]
    inner = x.new_empty(_size_of_inner(x, net, learns=learns) if returns else 0)
    networks, places = _count(x), _places(x, net, inner, outs, learns=learns)
    layers = [
        _layer(networks, piece, None if piece.then == "elu" else piece.then, place)
        for piece, place in zip(net.pieces, places, strict=True)
    ]
    cut = len(net.trunk)
    _core.bf16_forward(networks, _inputs(x), layers[:cut], layers[cut:], threads_now())
    for i, leaf in enumerate(net.leaves):
        if leaf.then == "elu":
            outs[i] = elu(outs[i])
    return tuple(outs), inner


# The compiled module is told addresses and sizes: arrays of everything would take as long as a
# layer. Addresses are taken anew for each call, from tensors that are held until it is over.


def _count(x: Tensor) -> int:
    """How many networks there are."""
    return math.prod(x.shape[:-2])


def _inputs(x: Tensor) -> tuple[int, ...]:
    """One network's rows, then how many networks a member has, and how far all are apart."""
    copies, step = (x.shape[1], x.stride(1)) if x.dim() > 3 else (1, 0)
    return (x.data_ptr(), *x.shape[-2:], x.stride(-2), max(copies, 1), x.stride(0), step)


def _layer(
    networks: int,
    piece: Piece,
    then: str | None,
    place: tuple[int, ...],
    grad: int = 0,
    to_weight: int = 0,
    to_bias: int = 0,
) -> tuple[int, ...]:
    """All that a call has to know of a layer, in the order of cpp/bindings_layers.cpp.

    Args:
        networks: How many there are.
        piece: The layer.
        then: What follows it in this call.
        place: Where it writes to; see `_places`.
        grad: Where the gradient of what came out is.
        to_weight: Where the whole gradient of the weights is, if it is wanted.
        to_bias: Where that of the biases is.
    """
    weight, bias = piece.weight, piece.bias
    features, width = weight.shape[-2:]
    first, count = piece.columns or (0, width)
    copy, copies = 0, 1
    if piece.copy is not None:
        copy, copies = piece.copy, math.prod(weight.shape[1:-2])
    # The compiled module cannot see where a tensor ends.
    assert weight.numel() == networks * copies * features * width
    assert bias.numel() == networks * copies * width
    assert weight.is_contiguous()
    assert bias.is_contiguous()
    assert copy < copies
    assert first + count <= width
    skipped_weights = _BYTES * (copy * features * width + first)
    skipped_biases = _BYTES * (copy * width + first)
    return (
        weight.data_ptr() + skipped_weights,
        bias.data_ptr() + skipped_biases,
        copies * features * width,
        copies * width,
        features,
        count,
        piece.reads,
        width,
        _THEN[then],
        *place,
        grad,
        to_weight + skipped_weights if to_weight else 0,
        to_bias + skipped_biases if to_bias else 0,
    )


def _sizes(x: Tensor, piece: Piece) -> tuple[int, int]:
    """Numbers that one network remembers of a trunk's layer: as float32, and in bfloat16."""
    rows, width = x.shape[-2], -(-piece.width // _PANEL) * _PANEL
    return rows * width, (rows + 1) // 2 * width


def _size_of_inner(x: Tensor, net: _Net, *, learns: bool) -> int:
    """How much is remembered of all networks' trunks."""
    sizes = [_sizes(x, piece) for piece in net.trunk]
    return _count(x) * sum(full + half if learns else full for full, half in sizes)


def _places(
    x: Tensor, net: _Net, inner: Tensor, outs: Sequence[Tensor], *, learns: bool
) -> list[tuple[int, ...]]:
    """Where layers write what comes out: float32 and how that lies, then what is in bfloat16."""
    networks, rows = _count(x), x.shape[-2]
    places: list[tuple[int, ...]] = []
    at = inner.data_ptr()
    for piece in net.trunk:
        if not inner.numel():
            places.append((0,) * 6)
            continue
        full, half = _sizes(x, piece)
        columns = at + _BYTES * networks * full
        places.append((at, _PANEL, rows * _PANEL, full, columns if learns else 0, half))
        at = columns + (_BYTES * networks * half if learns else 0)
    plain = [(x.data_ptr(), x.shape[-1], _PANEL, rows * x.shape[-1]) for x in outs]
    if net.keep:
        places[-1] = (*plain.pop(), *places[-1][4:])
    return places + [(*place, 0, 0) for place in plain]
