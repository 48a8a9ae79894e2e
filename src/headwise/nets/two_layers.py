"""Two hidden layers, and what may follow them, as one kernel on a GPU, where products are in TF32.

Layer by layer, what is between two products goes to memory and back, four times for every layer.
Here a program takes some rows through all of them, which leaves more of a GPU to other streams.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.population import Activation
from headwise.population.layers import Part

_MOST_FEATURES, _MOST_OUTPUTS = 128, 64
_WIDTHS = (32, 64, 128, 256)
_FEW_ROWS, _ROWS = 16, 32  # of a program of the kernels
_UNITS_THERE, _UNITS_BACK = 32, 64  # at a time
_SUMMED, _TILE = 128, 32  # of the one that adds up: rows at a time, units of a program
_PRECISION = "tf32"


def fits_two_layers(x: Tensor, first: Part, second: Part) -> bool:
    """Whether `two_layers` can take these inputs through these layers."""
    if x.device.type != "cuda" or torch.get_float32_matmul_precision() == "highest":
        return False
    features, hidden = first.weight.shape[-2:]
    width = second.weight.shape[-1]
    sizes = features <= _MOST_FEATURES and hidden in _WIDTHS and width in _WIDTHS
    return sizes and 3 <= x.dim() <= 5 and _can_learn(first)


def fits_output(output: Part) -> bool:
    """Whether `two_layers` can go through this layer as well."""
    return output.weight.shape[-1] <= _MOST_OUTPUTS and _can_learn(output)


def _can_learn(part: Part) -> bool:
    learns = torch.is_grad_enabled() and part.weight.requires_grad
    return not learns or part.to_weight is not None


def two_layers(
    x: Tensor, first: Part, second: Part, then: Activation, output: Part | None = None
) -> Tensor:
    """Inputs (P, *copies, B, in) through both layers, each followed by the activation.

    Then, if there is one, through a last layer without an activation.
    """
    x = x if x.stride(-1) == 1 else x.contiguous()
    parts = [first, second, *([] if output is None else [output])]
    parameters = [p for part in parts for p in part[:2]]
    if torch.is_grad_enabled() and (x.requires_grad or first.weight.requires_grad):
        gradients = [p for part in parts for p in part[2:] if p is not None]
        out: Tensor = _TwoLayers.apply(  # type: ignore[no-untyped-call]
            x, then, gradients, *parameters
        )
    else:
        out = _go_through(x, then, parameters, keep=False)[-1]
    return out.view(*x.shape[:-1], out.shape[-1])


class _Shape(NamedTuple):
    """Of a network: rows of its inputs, and numbers in each layer."""

    copies: int
    rows: int
    features: int
    hidden: int
    width: int
    outputs: int
    """0 if there is no last layer."""

    @staticmethod
    def of(x: Tensor, parameters: list[Tensor]) -> _Shape:
        rows, features = x.shape[-2:]
        copies, hidden, width = parameters[2].shape
        outputs = parameters[4].shape[-1] if len(parameters) > 4 else 0
        return _Shape(copies, rows, features, hidden, width, outputs)

    @property
    def blocks(self) -> dict[str, Any]:
        """What a kernel is compiled for."""
        return {
            "FEATURES": _power_of_two(self.features), "HIDDEN": self.hidden, "WIDTH": self.width,
            "OUT": _power_of_two(self.outputs) if self.outputs else 0, "PRECISION": _PRECISION,
        }  # fmt: skip


class _TwoLayers(torch.autograd.Function):
    """One kernel forward; on the way back one for rows, a product, and one for what is small."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, then: Activation, gradients: list[Tensor], *parameters: Tensor
    ) -> Tensor:
        first, second, out = _go_through(x, then, list(parameters), keep=True)
        ctx.save_for_backward(x, first, second, *parameters)
        ctx.gradients, ctx.then = gradients, then
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from headwise.nets.kernels.two_layers import add_up, come_back

        x, first, second, *parameters = ctx.saved_tensors
        by_inputs, by_weights = ctx.needs_input_grad[0], ctx.needs_input_grad[3]
        shape, grad = _Shape.of(x, parameters), grad.contiguous()
        sizes = (shape.rows, shape.features, shape.outputs)
        w1, _, w2, _, w3, _ = _with_last(parameters)
        to_first, to_second = torch.empty_like(first), torch.empty_like(second)
        to_x = torch.empty(x.shape if by_inputs else (0,), device=x.device)
        some = _some_rows(shape, _UNITS_BACK)
        come_back[(shape.copies, -(-shape.rows // some["ROWS"]))](
            grad, first, second, w1, w2, w3, to_first, to_second, to_x, *_strides(w1, w2, w3),
            *sizes, THEN=ctx.then, INPUTS=by_inputs, **shape.blocks, **some,
        )  # fmt: skip
        if by_weights:
            to_w1, to_b1, to_w2, *small = _with_last(ctx.gradients)
            # Triton is slow at products that sum over rows; it is left what is small.
            to_w2.baddbmm_(first.transpose(-1, -2), to_second)
            add_up[(shape.copies, max(shape.hidden, shape.width) // _TILE)](
                x, second, grad, to_first, to_second, to_w1, to_b1, *small,
                *_places(x), *_strides(to_w1, to_b1, *small), *sizes,
                ROWS=_SUMMED, TILE=_TILE, num_warps=4, num_stages=1, **shape.blocks,
            )  # fmt: skip
        return to_x if by_inputs else None, *[None] * (2 + len(parameters))


def _go_through(
    x: Tensor, then: Activation, parameters: list[Tensor], *, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """What comes out of each layer; of those before the last one only if it is to be kept."""
    from headwise.nets.kernels.two_layers import go_through

    shape = _Shape.of(x, parameters)
    rows = (shape.copies, shape.rows)
    first = torch.empty((*rows, shape.hidden) if keep else (0,), device=x.device)
    stored = keep or not shape.outputs
    second = torch.empty((*rows, shape.width) if stored else (0,), device=x.device)
    last = torch.empty((*rows, shape.outputs), device=x.device) if shape.outputs else second
    some = _some_rows(shape, _UNITS_THERE)
    everything = _with_last(parameters)
    go_through[(shape.copies, -(-shape.rows // some["ROWS"]))](
        x, *everything, first, second, last, *_places(x), *_strides(*everything),
        shape.rows, shape.features, shape.outputs, THEN=then, KEEP=keep, **shape.blocks, **some,
    )  # fmt: skip
    return first, second, last


def _with_last(parameters: list[Tensor]) -> list[Tensor]:
    """Six tensors, where there are only four some that are not looked at."""
    return parameters if len(parameters) > 4 else [*parameters, *parameters[2:]]


def _some_rows(shape: _Shape, units: int) -> dict[str, int]:
    """How a kernel that takes rows through the layers divides its work."""
    rows, step = _FEW_ROWS if shape.rows <= _FEW_ROWS else _ROWS, min(units, shape.hidden)
    return {"ROWS": rows, "STEP": step, "num_warps": 4, "num_stages": 2}


def _power_of_two(size: int) -> int:
    return max(1 << (size - 1).bit_length(), 16)


def _strides(*parameters: Tensor) -> tuple[int, ...]:
    """How far one network's parameters are from the next one's."""
    return tuple(parameter.stride(0) for parameter in parameters)


def _places(x: Tensor) -> tuple[int, ...]:
    """Sizes of both axes of copies, and how far members, copies and rows are from each other."""
    copies = [1, 1, *x.shape[1:-2]][-2:]
    steps = [0, 0, *x.stride()[1:-2]][-2:]
    return (*copies, x.stride(0), *steps, x.stride(-2))
