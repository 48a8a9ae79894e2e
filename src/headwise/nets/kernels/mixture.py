"""The Triton kernels of `mixture.py`. Imported only where there is a CUDA device.

One program for each row, whose units are next to each other: W1 is (heads, width), W2 (width).
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def mix(
    advantage, first, second, base, hidden, mixed, heads, width,
    BASE: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """ELU(A |W1|) |W2| of each row, plus BASE's number for it; keeps the hidden units."""
    row = tl.program_id(0).to(tl.int64)
    unit = tl.arange(0, UNITS)
    inside = unit < width
    before = tl.zeros((UNITS,), dtype=tl.float32)
    for head in range(0, heads):
        at = (row * heads + head) * width + unit
        weight = tl.abs(tl.load(first + at, mask=inside, other=0.0))
        before += tl.load(advantage + row * heads + head) * weight
    units = tl.where(before > 0.0, before, libdevice.expm1(before))
    tl.store(hidden + row * width + unit, units, mask=inside)
    weight = tl.abs(tl.load(second + row * width + unit, mask=inside, other=0.0))
    total = tl.sum(tl.where(inside, units * weight, 0.0), axis=0)
    if BASE:
        total += tl.load(base + row)
    tl.store(mixed + row, total)


@triton.jit
def mix_back(
    grad, advantage, first, second, hidden, to_advantage, to_first, to_second, heads, width,
    UNITS: tl.constexpr,
):  # fmt: skip
    """The gradients by advantages and both weights, from that by the mixture."""
    row = tl.program_id(0).to(tl.int64)
    unit = tl.arange(0, UNITS)
    inside = unit < width
    slope = tl.load(grad + row)
    units = tl.load(hidden + row * width + unit, mask=inside, other=0.0)
    outer = tl.load(second + row * width + unit, mask=inside, other=0.0)
    sign = tl.where(outer > 0.0, 1.0, tl.where(outer < 0.0, -1.0, 0.0))
    tl.store(to_second + row * width + unit, slope * units * sign, mask=inside)
    by_unit = slope * tl.abs(outer) * (tl.minimum(units, 0.0) + 1.0)
    for head in range(0, heads):
        at = (row * heads + head) * width + unit
        inner = tl.load(first + at, mask=inside, other=0.0)
        by_head = tl.sum(tl.where(inside, by_unit * tl.abs(inner), 0.0), axis=0)
        tl.store(to_advantage + row * heads + head, by_head)
        sign = tl.where(inner > 0.0, 1.0, tl.where(inner < 0.0, -1.0, 0.0))
        known = tl.load(advantage + row * heads + head)
        tl.store(to_first + at, by_unit * known * sign, mask=inside)


@triton.jit
def mix_slope(advantage, first, second, slope, heads, width, UNITS: tl.constexpr):
    """How much each advantage counts where it is."""
    row = tl.program_id(0).to(tl.int64)
    unit = tl.arange(0, UNITS)
    inside = unit < width
    before = tl.zeros((UNITS,), dtype=tl.float32)
    for head in range(0, heads):
        at = (row * heads + head) * width + unit
        weight = tl.abs(tl.load(first + at, mask=inside, other=0.0))
        before += tl.load(advantage + row * heads + head) * weight
    by_unit = tl.abs(tl.load(second + row * width + unit, mask=inside, other=0.0))
    by_unit = by_unit * tl.exp(tl.minimum(before, 0.0))
    for head in range(0, heads):
        at = (row * heads + head) * width + unit
        weight = tl.abs(tl.load(first + at, mask=inside, other=0.0))
        total = tl.sum(tl.where(inside, by_unit * weight, 0.0), axis=0)
        tl.store(slope + row * heads + head, total)
