"""The Triton kernels of `two_layers.py`. Imported only where there is a CUDA device.

A program takes some rows through all layers, a slice of the first layer's units at a time, so that
what is between the layers never leaves the chip but to be kept for the way back.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl

# Numbers that differ between networks; a variant for each kind of them gains nothing.
_SIZES = (
    "outer", "inner", "x_member", "x_outer", "x_inner", "x_row", "rows", "features", "outputs",
)  # fmt: skip
_SMALL = ("b1_copy", "b2_copy", "w3_copy", "b3_copy")


@triton.jit
def activated(x, THEN: tl.constexpr):
    """The activation of sums, as exactly as products in TF32 deserve."""
    if THEN == "relu":
        y = tl.maximum(x, 0.0)
    elif THEN == "tanh":
        y = 2.0 * tl.sigmoid(2.0 * x) - 1.0
    else:
        y = tl.where(x > 0.0, x, tl.exp(tl.minimum(x, 0.0)) - 1.0)
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


@triton.jit(do_not_specialize=[*_SIZES, *_SMALL])
def go_through(
    x, w1, b1, w2, b2, w3, b3, first, second, third,
    outer, inner, x_member, x_outer, x_inner, x_row,
    w1_copy, b1_copy, w2_copy, b2_copy, w3_copy, b3_copy, rows, features, outputs,
    FEATURES: tl.constexpr, HIDDEN: tl.constexpr, WIDTH: tl.constexpr, OUT: tl.constexpr,
    STEP: tl.constexpr, ROWS: tl.constexpr, THEN: tl.constexpr, KEEP: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Some rows of one network: second = f(f(x w1 + b1) w2 + b2), and third = second w3 + b3.

    What is before the last layer is stored if it is to be kept.
    """
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
    if KEEP or OUT == 0:
        tl.store(second + here[:, None] * WIDTH + column[None, :], total, mask=inside)
    if OUT > 0:
        output = tl.arange(0, OUT)
        real = (output < outputs)[None, :]
        w3 += copy.to(tl.int64) * w3_copy
        last = tl.load(w3 + column[:, None] * outputs + output[None, :], mask=real, other=0.0)
        bias = tl.load(b3 + copy * b3_copy + output, mask=output < outputs, other=0.0)
        said = tl.dot(total, last, input_precision=PRECISION) + bias[None, :]
        tl.store(third + here[:, None] * outputs + output[None, :], said, mask=inside & real)


@triton.jit(do_not_specialize=["w3_copy", "rows", "features", "outputs"])
def come_back(
    grad, first, second, w1, w2, w3, to_first, to_second, to_x,
    w1_copy, w2_copy, w3_copy, rows, features, outputs,
    FEATURES: tl.constexpr, HIDDEN: tl.constexpr, WIDTH: tl.constexpr, OUT: tl.constexpr,
    STEP: tl.constexpr, ROWS: tl.constexpr, THEN: tl.constexpr, INPUTS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradients before both activations, and by the inputs if they are asked for."""
    copy = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    inside = (row < rows)[:, None]
    feature, column = tl.arange(0, FEATURES), tl.arange(0, WIDTH)
    here = copy.to(tl.int64) * rows + row
    at = here[:, None] * WIDTH + column[None, :]
    if OUT > 0:
        output = tl.arange(0, OUT)
        real = (output < outputs)[None, :]
        w3 += copy.to(tl.int64) * w3_copy
        last = tl.load(w3 + column[:, None] * outputs + output[None, :], mask=real, other=0.0)
        asked = tl.load(
            grad + here[:, None] * outputs + output[None, :], mask=inside & real, other=0.0
        )
        slope = tl.dot(asked, tl.trans(last), input_precision=PRECISION)
    else:
        slope = tl.load(grad + at, mask=inside, other=0.0)
    slope *= slope_at(tl.load(second + at, mask=inside, other=0.0), THEN)
    tl.store(to_second + at, slope, mask=inside)
    w1 += copy.to(tl.int64) * w1_copy
    w2 += copy.to(tl.int64) * w2_copy
    for start in range(0, HIDDEN, STEP):
        unit = start + tl.arange(0, STEP)
        out_of = tl.load(w2 + unit[:, None] * WIDTH + column[None, :])
        between = tl.dot(slope, tl.trans(out_of), input_precision=PRECISION)
        before = here[:, None] * HIDDEN + unit[None, :]
        between *= slope_at(tl.load(first + before, mask=inside, other=0.0), THEN)
        tl.store(to_first + before, between, mask=inside)
    if INPUTS:
        # Read again rather than used at once: of two products in one loop Triton makes twice as
        # many, because it gives every warp rows of its own.
        tl.debug_barrier()
        total = tl.zeros((ROWS, FEATURES), dtype=tl.float32)
        for start in range(0, HIDDEN, STEP):
            unit = start + tl.arange(0, STEP)
            into = tl.load(
                w1 + feature[:, None] * HIDDEN + unit[None, :],
                mask=(feature < features)[:, None],
                other=0.0,
            )
            there = to_first + here[:, None] * HIDDEN + unit[None, :]
            again = tl.load(there, mask=inside, other=0.0)
            total = tl.dot(again, tl.trans(into), total, input_precision=PRECISION)
        known = inside & (feature < features)[None, :]
        tl.store(to_x + here[:, None] * features + feature[None, :], total, mask=known)


@triton.jit
def add_before(
    x, x_row, to_first, to_w1, to_b1, many, unit, rows, features,
    FEATURES: tl.constexpr, HIDDEN: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Adds the gradients of w1 and b1 for some of the first layer's units."""
    row, feature = tl.arange(0, ROWS), tl.arange(0, FEATURES)
    real = feature < features
    total = tl.zeros((FEATURES, TILE), dtype=tl.float32)
    sums = tl.zeros((TILE,), dtype=tl.float32)
    for start in range(0, rows, ROWS):
        inside = (start + row < rows)[:, None]
        seen = tl.load(
            x + (start + row)[:, None] * x_row + feature[None, :],
            mask=inside & real[None, :],
            other=0.0,
        )
        at = (many + start + row)[:, None] * HIDDEN + unit[None, :]
        slope = tl.load(to_first + at, mask=inside, other=0.0)
        total = tl.dot(tl.trans(seen), slope, total, input_precision=PRECISION)
        sums += tl.sum(slope, axis=0)
    weight = to_w1 + feature[:, None] * HIDDEN + unit[None, :]
    known = tl.load(weight, mask=real[:, None], other=0.0)
    tl.store(weight, known + total, mask=real[:, None])
    tl.store(to_b1 + unit, tl.load(to_b1 + unit) + sums)


@triton.jit
def add_behind(
    second, grad, to_second, to_b2, to_w3, to_b3, many, unit, rows, outputs,
    WIDTH: tl.constexpr, OUT: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Adds the gradients of b2, w3 and b3 for some of the second layer's units."""
    row, output = tl.arange(0, ROWS), tl.arange(0, OUT if OUT > 0 else 16)
    real = output < outputs
    total = tl.zeros((TILE, OUT if OUT > 0 else 16), dtype=tl.float32)
    sums = tl.zeros((TILE,), dtype=tl.float32)
    sums_behind = tl.zeros((OUT if OUT > 0 else 16,), dtype=tl.float32)
    for start in range(0, rows, ROWS):
        inside = (start + row < rows)[:, None]
        at = many + start + row
        slope = tl.load(to_second + at[:, None] * WIDTH + unit[None, :], mask=inside, other=0.0)
        sums += tl.sum(slope, axis=0)
        if OUT > 0:
            made = tl.load(second + at[:, None] * WIDTH + unit[None, :], mask=inside, other=0.0)
            asked = tl.load(
                grad + at[:, None] * outputs + output[None, :],
                mask=inside & real[None, :],
                other=0.0,
            )
            total = tl.dot(tl.trans(made), asked, total, input_precision=PRECISION)
            sums_behind += tl.sum(asked, axis=0)
    tl.store(to_b2 + unit, tl.load(to_b2 + unit) + sums)
    if OUT > 0:
        weight = to_w3 + unit[:, None] * outputs + output[None, :]
        known = tl.load(weight, mask=real[None, :], other=0.0)
        tl.store(weight, known + total, mask=real[None, :])
        if tl.program_id(1) == 0:
            before = tl.load(to_b3 + output, mask=real, other=0.0)
            tl.store(to_b3 + output, before + sums_behind, mask=real)


@triton.jit(do_not_specialize=[*_SIZES, *_SMALL])
def add_up(
    x, second, grad, to_first, to_second, to_w1, to_b1, to_b2, to_w3, to_b3,
    outer, inner, x_member, x_outer, x_inner, x_row,
    w1_copy, b1_copy, b2_copy, w3_copy, b3_copy, rows, features, outputs,
    FEATURES: tl.constexpr, HIDDEN: tl.constexpr, WIDTH: tl.constexpr, OUT: tl.constexpr,
    ROWS: tl.constexpr, TILE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Adds the gradients of everything but w2, for some units of both layers."""
    copy, first_unit = tl.program_id(0), tl.program_id(1) * TILE
    unit = first_unit + tl.arange(0, TILE)
    many = copy.to(tl.int64) * rows
    if first_unit < HIDDEN:
        add_before(
            x + place_of(copy, outer, inner, x_member, x_outer, x_inner), x_row, to_first,
            to_w1 + copy.to(tl.int64) * w1_copy, to_b1 + copy * b1_copy, many, unit, rows, features,
            FEATURES, HIDDEN, ROWS, TILE, PRECISION,
        )  # fmt: skip
    if first_unit < WIDTH:
        add_behind(
            second, grad, to_second, to_b2 + copy * b2_copy, to_w3 + copy.to(tl.int64) * w3_copy,
            to_b3 + copy * b3_copy, many, unit, rows, outputs,
            WIDTH, OUT, ROWS, TILE, PRECISION,
        )  # fmt: skip
