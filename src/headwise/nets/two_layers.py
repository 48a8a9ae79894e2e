"""Two layers of a network as one kernel on a GPU, where products may be in TF32.

Layer by layer, what is between two products goes to memory and back, four times for every layer.
Here a program takes some rows through both, which leaves more of a GPU to other streams.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.population import Activation
from headwise.population.layers import Part

_MOST_FEATURES = 128
_WIDTHS = (32, 64, 128, 256)
_FEW_ROWS, _ROWS, _STEP = 16, 32, 32  # of the kernels: rows of a program, units at a time
_SUMMED, _TILE = 64, 64  # of the one for weights
_PRECISION = "tf32"


def fits_two_layers(x: Tensor, first: Part, second: Part) -> bool:
    """Whether `two_layers` can take these inputs through these layers."""
    if x.device.type != "cuda" or torch.get_float32_matmul_precision() == "highest":
        return False
    features, hidden = first.weight.shape[-2:]
    width = second.weight.shape[-1]
    sizes = features <= _MOST_FEATURES and hidden in _WIDTHS and width in _WIDTHS
    learns = torch.is_grad_enabled() and first.weight.requires_grad
    return sizes and 3 <= x.dim() <= 5 and (not learns or first.to_weight is not None)


def two_layers(x: Tensor, first: Part, second: Part, then: Activation) -> Tensor:
    """Inputs (P, *copies, B, in) through both layers, each followed by the activation."""
    x = x if x.stride(-1) == 1 else x.contiguous()
    parameters = (first.weight, first.bias, second.weight, second.bias)
    if torch.is_grad_enabled() and (x.requires_grad or first.weight.requires_grad):
        out: Tensor = _TwoLayers.apply(  # type: ignore[no-untyped-call]
            x, *parameters, _gradients(first, second), then
        )
    else:
        _, out = _go_through(x, *parameters, then, keep=False)
    return out.view(*x.shape[:-1], out.shape[-1])


class _Gradients(NamedTuple):
    """Where the gradients of both layers are added up."""

    w1: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor


def _gradients(first: Part, second: Part) -> _Gradients | None:
    parts = (first.to_weight, first.to_bias, second.to_weight, second.to_bias)
    known = [x for x in parts if x is not None]
    return _Gradients(*known) if len(known) == len(parts) else None


class _TwoLayers(torch.autograd.Function):
    """One kernel forward; on the way back one for rows and one for weights."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor,
        gradients: _Gradients | None, then: Activation,
    ) -> Tensor:  # fmt: skip
        first, second = _go_through(x, w1, b1, w2, b2, then, keep=True)
        ctx.save_for_backward(x, w1, b1, w2, b2, first, second)
        ctx.gradients, ctx.then = gradients, then
        return second

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from headwise.nets.two_layers_kernel import add_up, come_back

        x, w1, b1, w2, b2, first, second = ctx.saved_tensors
        by_inputs, by_weights = ctx.needs_input_grad[:2]
        rows, features = x.shape[-2:]
        copies, hidden, width = w2.shape
        to_first, to_second = torch.empty_like(first), torch.empty_like(second)
        to_x = torch.empty(x.shape if by_inputs else (0,), device=x.device)
        steps = _strides(w1, b1, w2, b2)
        blocks = _blocks(x, w2, ctx.then)
        come_back[(copies, -(-rows // blocks["ROWS"]))](
            grad.contiguous(), first, second, w1, w2, to_first, to_second, to_x,
            steps[0], steps[2], rows, features, INPUTS=by_inputs, **blocks,
        )  # fmt: skip
        if by_weights:
            tile = min(_TILE, hidden, width)
            tiles = (hidden // tile) * (width // tile) + -(-features // tile) * (hidden // tile)
            add_up[(copies, tiles)](
                x, first, to_first, to_second, *ctx.gradients, *_places(x), *steps, rows, features,
                HIDDEN=hidden, WIDTH=width, ROWS=_SUMMED, TILE=tile, PRECISION=_PRECISION,
                num_warps=4, num_stages=2,
            )  # fmt: skip
        return to_x if by_inputs else None, *[None] * 6


def _go_through(
    x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, then: Activation, *, keep: bool
) -> tuple[Tensor, Tensor]:
    """What comes out of both layers; of the first one only if it is to be kept."""
    from headwise.nets.two_layers_kernel import go_through

    rows, features = x.shape[-2:]
    copies, hidden, width = w2.shape
    first = torch.empty((copies, rows, hidden) if keep else (0,), device=x.device)
    second = torch.empty((copies, rows, width), device=x.device)
    blocks = _blocks(x, w2, then)
    go_through[(copies, -(-rows // blocks["ROWS"]))](
        x, w1, b1, w2, b2, first, second, *_places(x), *_strides(w1, b1, w2, b2), rows, features,
        KEEP=keep, **blocks,
    )  # fmt: skip
    return first, second


def _blocks(x: Tensor, w2: Tensor, then: Activation) -> dict[str, Any]:
    rows, features = x.shape[-2:]
    hidden, width = w2.shape[-2:]
    return {
        "FEATURES": max(1 << (features - 1).bit_length(), 16), "HIDDEN": hidden, "WIDTH": width,
        "STEP": _STEP, "ROWS": _FEW_ROWS if rows <= _FEW_ROWS else _ROWS, "THEN": then,
        "PRECISION": _PRECISION, "num_warps": 4, "num_stages": 2,
    }  # fmt: skip


def _strides(*parameters: Tensor) -> tuple[int, ...]:
    """How far one network's parameters are from the next one's."""
    return tuple(parameter.stride(0) for parameter in parameters)


def _places(x: Tensor) -> tuple[int, ...]:
    """Sizes of both axes of copies, and how far members, copies and rows are from each other."""
    copies = [1, 1, *x.shape[1:-2]][-2:]
    steps = [0, 0, *x.stride()[1:-2]][-2:]
    return (*copies, x.stride(0), *steps, x.stride(-2))
