"""The mixture on a GPU: a program for each row, whose units are next to each other.

W1 is (heads, width) and W2 (width), one after the other in a row of weights.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl
from torch import Tensor

from headwise.ops.buffers import Buffer
from headwise.ops.triton.functions import expm1


@triton.jit
def _row(x, steps, copies):  # noqa: ANN202
    """Where a program's row of a buffer begins: axis 0 is the row, axis 1 member and copy."""
    both = tl.program_id(1).to(tl.int64)
    member, copy = both // copies, both % copies
    s0, s1, s2 = steps
    return x + member * s0 + copy * s1 + tl.program_id(0) * s2


@triton.jit
def _size(w, inside, SOFT: tl.constexpr):  # noqa: ANN202
    """Weights as they count, zeros beyond them."""
    if SOFT:
        ramp = tl.maximum(w, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(w)))
        return tl.where(inside, ramp, 0.0)
    return tl.abs(w)


@triton.jit
def _back(w, y, SOFT: tl.constexpr):  # noqa: ANN202
    """What comes back to weights."""
    if SOFT:
        return y / (1.0 + tl.exp(-w))
    return tl.where(w > 0.0, 1.0, tl.where(w < 0.0, -1.0, 0.0)) * y


@triton.jit
def forward(
    value, advantage, weights, mixed, steps_v, steps_a, steps_w, steps_m, copies, heads, width,
    VALUE: tl.constexpr, RELU: tl.constexpr, SOFT: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """V + ELU(A |W1|) |W2| of each row."""
    unit = tl.arange(0, UNITS)
    inside = unit < width
    a, w = _row(advantage, steps_a, copies), _row(weights, steps_w, copies)
    inner = tl.zeros((UNITS,), dtype=tl.float32)
    for head in range(0, heads):
        first = _size(tl.load(w + head * width + unit, mask=inside, other=0.0), inside, SOFT)
        inner += tl.load(a + head) * first
    low = 0.0 if RELU else expm1(tl.minimum(inner, 0.0))
    hidden = tl.where(inner > 0.0, inner, low)
    second = _size(tl.load(w + heads * width + unit, mask=inside, other=0.0), inside, SOFT)
    total = tl.sum(tl.where(inside, hidden * second, 0.0), axis=0)
    if VALUE:
        total += tl.load(_row(value, steps_v, copies))
    tl.store(_row(mixed, steps_m, copies), total)


@triton.jit
def backward(
    derivative, advantage, weights, to_value, to_advantage, to_weights,
    steps_s, steps_a, steps_w, steps_v, steps_da, steps_dw, copies, heads, width,
    VALUE: tl.constexpr, RELU: tl.constexpr, SOFT: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """The gradients of value, advantages and weights."""
    unit = tl.arange(0, UNITS)
    inside = unit < width
    a, w = _row(advantage, steps_a, copies), _row(weights, steps_w, copies)
    da, dw = _row(to_advantage, steps_da, copies), _row(to_weights, steps_dw, copies)
    d = tl.load(_row(derivative, steps_s, copies))
    inner = tl.zeros((UNITS,), dtype=tl.float32)
    for head in range(0, heads):
        first = _size(tl.load(w + head * width + unit, mask=inside, other=0.0), inside, SOFT)
        inner += tl.load(a + head) * first
    low = 0.0 if RELU else expm1(tl.minimum(inner, 0.0))
    slope_of_unit = tl.where(inner < 0.0, 0.0, 1.0) if RELU else low + 1.0
    second = tl.load(w + heads * width + unit, mask=inside, other=0.0)
    hidden = tl.where(inner > 0.0, inner, low)
    tl.store(dw + heads * width + unit, _back(second, d * hidden, SOFT), mask=inside)
    by_unit = d * _size(second, inside, SOFT) * slope_of_unit
    for head in range(0, heads):
        first = tl.load(w + head * width + unit, mask=inside, other=0.0)
        size = _size(first, inside, SOFT)
        tl.store(da + head, tl.sum(tl.where(inside, by_unit * size, 0.0), axis=0))
        to_weight = _back(first, by_unit * tl.load(a + head), SOFT)
        tl.store(dw + head * width + unit, to_weight, mask=inside)
    if VALUE:
        tl.store(_row(to_value, steps_v, copies), d)


def mix(
    value: Buffer | None, advantage: Buffer, weights: Buffer, out: Buffer, *, relu: bool, soft: bool
) -> None:
    """The operation of `headwise.ops.mixture`."""
    x, grid, sizes, units = _plan(advantage, weights)
    forward[grid](
        x if value is None else value.tensor, x, weights.tensor, out.tensor,
        _steps(x if value is None else value.tensor), _steps(x), _steps(weights.tensor),
        _steps(out.tensor), *sizes, VALUE=value is not None, RELU=relu, SOFT=soft, **units,
    )  # fmt: skip


def mix_backward(
    value: Buffer | None, advantage: Buffer, weights: Buffer, out: Buffer, *, relu: bool, soft: bool
) -> None:
    """The backward of `mix`."""
    x, grid, sizes, units = _plan(advantage, weights)
    to_value = x if value is None else value.gradient
    backward[grid](
        out.gradient, x, weights.tensor, to_value, advantage.gradient, weights.gradient,
        _steps(out.gradient), _steps(x), _steps(weights.tensor), _steps(to_value),
        _steps(advantage.gradient), _steps(weights.gradient), *sizes,
        VALUE=value is not None, RELU=relu, SOFT=soft, **units,
    )  # fmt: skip


def _plan(
    advantage: Buffer, weights: Buffer
) -> tuple[Tensor, tuple[int, int], tuple[int, int, int], dict[str, int]]:
    x = advantage.tensor
    members, copies, rows, heads = x.shape
    width = weights.width // (heads + 1)
    units = {"UNITS": 1 << (width - 1).bit_length(), "num_warps": 1 if width <= 128 else 4}
    return x, (rows, members * copies), (copies, heads, width), units


def _steps(x: Tensor) -> tuple[int, int, int]:
    return x.stride()[:3]
