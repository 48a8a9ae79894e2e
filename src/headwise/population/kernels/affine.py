"""The Triton kernels around a layer's products. Imported only where there is a CUDA device.

Small networks are as slow as their kernels are many: these do in one what a bias, an activation,
its slope, a sum over rows and the adding up of gradients would do in five.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add_bias(out, bias, bias_stride, rows, width, THEN: tl.constexpr, BLOCK: tl.constexpr):
    """Adds the bias to products (N, rows, width) in place, and applies the activation THEN."""
    copy = tl.program_id(0)
    lane = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < rows * width
    at = out + copy.to(tl.int64) * rows * width + lane
    x = tl.load(at, mask=inside, other=0.0)
    x += tl.load(bias + copy * bias_stride + lane % width, mask=inside, other=0.0)
    if THEN == "relu":
        x = tl.maximum(x, 0.0)
    elif THEN == "tanh":
        x = libdevice.tanh(x)
    elif THEN == "elu":
        x = tl.where(x > 0.0, x, libdevice.expm1(x))
    tl.store(at, x, mask=inside)


@triton.jit
def go_back(
    grad, out, before, to_bias, bias_stride, rows, width,
    THEN: tl.constexpr, BIAS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The gradient before the activation, and its sum over rows added to that of the bias."""
    copy = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    first = copy.to(tl.int64) * rows * width
    total = tl.zeros((COLUMNS,), dtype=tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < width)[None, :]
        at = first + row[:, None] * width + column[None, :]
        slope = tl.load(grad + at, mask=inside, other=0.0)
        if THEN != "none":
            y = tl.load(out + at, mask=inside, other=0.0)
            if THEN == "relu":
                slope = tl.where(y > 0.0, slope, 0.0)
            elif THEN == "tanh":
                slope = slope * (1.0 - y * y)
            else:
                slope = slope * (tl.minimum(y, 0.0) + 1.0)
            tl.store(before + at, slope, mask=inside)
        if BIAS:
            total += tl.sum(slope, axis=0)
    if BIAS:
        here = to_bias + copy * bias_stride + column
        known = tl.load(here, mask=column < width, other=0.0)
        tl.store(here, known + total, mask=column < width)
