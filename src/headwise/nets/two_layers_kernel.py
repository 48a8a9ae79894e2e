"""The Triton kernels of `two_layers.py`. Imported only where there is a CUDA device.

A program takes some rows through both layers, a slice of the first layer's units at a time, so that
what is between the layers never leaves the chip but to be kept for the way back.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def activated(x, THEN: tl.constexpr):
    """The activation of sums."""
    if THEN == "relu":
        y = tl.maximum(x, 0.0)
    elif THEN == "tanh":
        y = libdevice.tanh(x)
    else:
        y = tl.where(x > 0.0, x, libdevice.expm1(x))
    return y


@triton.jit
def slope_at(y, THEN: tl.constexpr):
    """The slope of the activation where it came to y."""
    if THEN == "relu":
        slope = tl.where(y > 0.0, 1.0, 0.0)
    elif THEN == "tanh":
        slope = 1.0 - y * y
    else:
        slope = tl.minimum(y, 0.0) + 1.0
    return slope


@triton.jit
def place_of(copy, outer, inner, per_member, per_outer, per_inner):
    """Where the inputs of a network begin, counted as (member, outer copy, inner copy)."""
    member = copy // (outer * inner)
    return (
        member.to(tl.int64) * per_member
        + (copy // inner) % outer * per_outer
        + copy % inner * per_inner
    )


@triton.jit
def go_through(
    x, w1, b1, w2, b2, first, second,
    outer, inner, x_member, x_outer, x_inner, x_row,
    w1_copy, b1_copy, w2_copy, b2_copy, rows, features,
    FEATURES: tl.constexpr, HIDDEN: tl.constexpr, WIDTH: tl.constexpr, STEP: tl.constexpr,
    ROWS: tl.constexpr, THEN: tl.constexpr, KEEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Some rows of one network: second = f(f(x w1 + b1) w2 + b2); first, if kept, is between."""
    copy = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    inside = (row < rows)[:, None]
    feature, column = tl.arange(0, FEATURES), tl.arange(0, WIDTH)
    x += place_of(copy, outer, inner, x_member, x_outer, x_inner)
    seen = tl.load(
        x + row[:, None] * x_row + feature[None, :],
        mask=inside & (feature < features)[None, :],
        other=0.0,
    )
    here = copy.to(tl.int64) * rows + row
    w1 += copy.to(tl.int64) * w1_copy
    w2 += copy.to(tl.int64) * w2_copy
    total = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
    for start in range(0, HIDDEN, STEP):
        unit = start + tl.arange(0, STEP)
        into = tl.load(
            w1 + feature[:, None] * HIDDEN + unit[None, :],
            mask=(feature < features)[:, None],
            other=0.0,
        )
        between = tl.dot(seen, into, input_precision=PRECISION)
        between = activated(between + tl.load(b1 + copy * b1_copy + unit)[None, :], THEN)
        if KEEP:
            tl.store(first + here[:, None] * HIDDEN + unit[None, :], between, mask=inside)
        out_of = tl.load(w2 + unit[:, None] * WIDTH + column[None, :])
        total = tl.dot(between, out_of, total, input_precision=PRECISION)
    total = activated(total + tl.load(b2 + copy * b2_copy + column)[None, :], THEN)
    tl.store(second + here[:, None] * WIDTH + column[None, :], total, mask=inside)


@triton.jit
def come_back(
    grad, first, second, w1, w2, to_first, to_second, to_x, w1_copy, w2_copy, rows, features,
    FEATURES: tl.constexpr, HIDDEN: tl.constexpr, WIDTH: tl.constexpr, STEP: tl.constexpr,
    ROWS: tl.constexpr, THEN: tl.constexpr, INPUTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradients before both activations, and by the inputs if they are asked for."""
    copy = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    inside = (row < rows)[:, None]
    feature, column = tl.arange(0, FEATURES), tl.arange(0, WIDTH)
    here = copy.to(tl.int64) * rows + row
    at = here[:, None] * WIDTH + column[None, :]
    slope = tl.load(grad + at, mask=inside, other=0.0)
    slope *= slope_at(tl.load(second + at, mask=inside, other=0.0), THEN)
    tl.store(to_second + at, slope, mask=inside)
    w1 += copy.to(tl.int64) * w1_copy
    w2 += copy.to(tl.int64) * w2_copy
    total = tl.zeros((ROWS, FEATURES), dtype=tl.float32)
    for start in range(0, HIDDEN, STEP):
        unit = start + tl.arange(0, STEP)
        out_of = tl.load(w2 + unit[:, None] * WIDTH + column[None, :])
        between = tl.dot(slope, tl.trans(out_of), input_precision=PRECISION)
        before = here[:, None] * HIDDEN + unit[None, :]
        between *= slope_at(tl.load(first + before, mask=inside, other=0.0), THEN)
        tl.store(to_first + before, between, mask=inside)
        if INPUTS:
            into = tl.load(
                w1 + feature[:, None] * HIDDEN + unit[None, :],
                mask=(feature < features)[:, None],
                other=0.0,
            )
            total = tl.dot(between, tl.trans(into), total, input_precision=PRECISION)
    if INPUTS:
        there = inside & (feature < features)[None, :]
        tl.store(to_x + here[:, None] * features + feature[None, :], total, mask=there)


@triton.jit
def add_up(
    x, first, to_first, to_second, to_w1, to_b1, to_w2, to_b2,
    outer, inner, x_member, x_outer, x_inner, x_row,
    w1_copy, b1_copy, w2_copy, b2_copy, rows, features,
    HIDDEN: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Adds the gradients of weights and biases: one tile of the second layer's, or the first's."""
    copy, tile = tl.program_id(0), tl.program_id(1)
    tiles = (HIDDEN // TILE) * (WIDTH // TILE)
    row = tl.arange(0, ROWS)
    many = copy.to(tl.int64) * rows
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    sums = tl.zeros((TILE,), dtype=tl.float32)
    if tile < tiles:
        part = tile // (WIDTH // TILE)
        across = part * TILE + tl.arange(0, TILE)
        column = tile % (WIDTH // TILE) * TILE + tl.arange(0, TILE)
        for start in range(0, rows, ROWS):
            at = many + start + row
            inside = (start + row < rows)[:, None]
            left = tl.load(first + at[:, None] * HIDDEN + across[None, :], mask=inside, other=0.0)
            right = tl.load(
                to_second + at[:, None] * WIDTH + column[None, :], mask=inside, other=0.0
            )
            total = tl.dot(tl.trans(left), right, total, input_precision=PRECISION)
            sums += tl.sum(right, axis=0)
        here = to_w2 + copy.to(tl.int64) * w2_copy + across[:, None] * WIDTH + column[None, :]
        tl.store(here, tl.load(here) + total)
        if part == 0:
            bias = to_b2 + copy * b2_copy + column
            tl.store(bias, tl.load(bias) + sums)
    else:
        part = (tile - tiles) // (HIDDEN // TILE)
        across = part * TILE + tl.arange(0, TILE)
        column = (tile - tiles) % (HIDDEN // TILE) * TILE + tl.arange(0, TILE)
        x += place_of(copy, outer, inner, x_member, x_outer, x_inner)
        real = across < features
        for start in range(0, rows, ROWS):
            at = many + start + row
            inside = (start + row < rows)[:, None]
            left = tl.load(
                x + (start + row)[:, None] * x_row + across[None, :],
                mask=inside & real[None, :],
                other=0.0,
            )
            right = tl.load(
                to_first + at[:, None] * HIDDEN + column[None, :], mask=inside, other=0.0
            )
            total = tl.dot(tl.trans(left), right, total, input_precision=PRECISION)
            sums += tl.sum(right, axis=0)
        here = to_w1 + copy.to(tl.int64) * w1_copy + across[:, None] * HIDDEN + column[None, :]
        known = tl.load(here, mask=real[:, None], other=0.0)
        tl.store(here, known + total, mask=real[:, None])
        if part == 0:
            bias = to_b1 + copy * b1_copy + column
            tl.store(bias, tl.load(bias) + sums)
