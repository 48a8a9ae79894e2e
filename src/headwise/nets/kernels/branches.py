"""The Triton kernels of `branches.py`. Imported only where there is a CUDA device.

Units below VALUE are the value's branch, the others the advantages'. Its single column is a sum of
products, not a matrix product: that would be mostly zeros.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl

# Sizes and strides that say nothing about how parameters are best loaded: not a kernel for each.
_ANY = ["b_copy", "wv_copy", "bv_copy", "wa_copy", "ba_copy", "rows", "outputs"]


@triton.jit
def some_units(
    features, w, w_row, b, embedding, here, inside,
    FEATURES: tl.constexpr, UNITS: tl.constexpr, FIRST: tl.constexpr, WIDTH: tl.constexpr,
    STEP: tl.constexpr, ROWS: tl.constexpr, KEEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Units of the embedding of some rows, tanh(features w + b), and in memory if they are kept."""
    unit = FIRST + tl.arange(0, WIDTH)
    total = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
    for start in range(0, FEATURES, STEP):
        feature = start + tl.arange(0, STEP)
        seen = tl.load(
            features + here[:, None] * FEATURES + feature[None, :], mask=inside, other=0.0
        )
        into = tl.load(w + feature[:, None] * w_row + unit[None, :])
        total = tl.dot(seen, into, total, input_precision=PRECISION)
    total += tl.load(b + unit)[None, :]
    units = 2.0 * tl.sigmoid(2.0 * total) - 1.0  # libdevice.tanh takes longer than all the rest
    if KEEP:
        tl.store(embedding + here[:, None] * UNITS + unit[None, :], units, mask=inside)
    return units


@triton.jit(do_not_specialize=_ANY)
def go_out(
    features, w, b, wv, bv, wa, ba, embedding, value, advantage,
    w_copy, w_row, b_copy, wv_copy, bv_copy, wa_copy, ba_copy, rows, outputs,
    FEATURES: tl.constexpr, UNITS: tl.constexpr, VALUE: tl.constexpr, OUTPUTS: tl.constexpr,
    STEP: tl.constexpr, ROWS: tl.constexpr, KEEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Some rows of one network: features to the value, the advantages, or both."""
    copy = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    inside = (row < rows)[:, None]
    here = copy.to(tl.int64) * rows + row
    w += copy.to(tl.int64) * w_copy
    b += copy * b_copy
    if VALUE > 0:
        units = some_units(
            features, w, w_row, b, embedding, here, inside,
            FEATURES, UNITS, 0, VALUE, STEP, ROWS, KEEP, PRECISION,
        )  # fmt: skip
        column = tl.load(wv + copy * wv_copy + tl.arange(0, VALUE))
        single = tl.sum(units * column[None, :], axis=1) + tl.load(bv + copy * bv_copy)
        tl.store(value + here, single, mask=row < rows)
    if VALUE < UNITS:
        others = some_units(
            features, w, w_row, b, embedding, here, inside,
            FEATURES, UNITS, VALUE, UNITS - VALUE, STEP, ROWS, KEEP, PRECISION,
        )  # fmt: skip
        unit, output = tl.arange(0, UNITS - VALUE), tl.arange(0, OUTPUTS)
        real = (output < outputs)[None, :]
        columns = tl.load(
            wa + copy * wa_copy + unit[:, None] * outputs + output[None, :], mask=real, other=0.0
        )
        many = tl.dot(others, columns, input_precision=PRECISION)
        many += tl.load(ba + copy * ba_copy + output, mask=output < outputs, other=0.0)[None, :]
        there = advantage + here[:, None] * outputs + output[None, :]
        tl.store(there, many, mask=inside & real)


@triton.jit
def pass_on(
    slope, total, embedding, to_embedding, w, w_row, unit, here, inside,
    FEATURES: tl.constexpr, UNITS: tl.constexpr, INPUTS: tl.constexpr, WEIGHTS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """From the gradient by a slice of the embedding on to that by the features, added up."""
    feature = tl.arange(0, FEATURES)
    at = here[:, None] * UNITS + unit[None, :]
    y = tl.load(embedding + at, mask=inside, other=0.0)
    slope = slope * (1.0 - y * y)
    if WEIGHTS:
        tl.store(to_embedding + at, slope, mask=inside)
    if INPUTS:
        into = tl.load(w + feature[:, None] * w_row + unit[None, :])
        total = tl.dot(slope, tl.trans(into), total, input_precision=PRECISION)
    return total


@triton.jit(do_not_specialize=_ANY)
def come_back(
    to_value, to_advantage, embedding, w, wv, wa, to_embedding, to_features,
    w_copy, w_row, wv_copy, wa_copy, rows, outputs,
    FEATURES: tl.constexpr, UNITS: tl.constexpr, VALUE: tl.constexpr, OUTPUTS: tl.constexpr,
    STEP: tl.constexpr, ROWS: tl.constexpr, INPUTS: tl.constexpr, WEIGHTS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradients before the tanh if weights learn, and by the features if they are asked for."""
    copy = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    inside = (row < rows)[:, None]
    here = copy.to(tl.int64) * rows + row
    feature, output = tl.arange(0, FEATURES), tl.arange(0, OUTPUTS)
    w += copy.to(tl.int64) * w_copy
    total = tl.zeros((ROWS, FEATURES), dtype=tl.float32)
    if VALUE > 0:
        single = tl.load(to_value + here, mask=row < rows, other=0.0)
        for start in range(0, VALUE, STEP):
            unit = start + tl.arange(0, STEP)
            slope = single[:, None] * tl.load(wv + copy * wv_copy + unit)[None, :]
            total = pass_on(
                slope, total, embedding, to_embedding, w, w_row, unit, here, inside,
                FEATURES, UNITS, INPUTS, WEIGHTS, PRECISION,
            )  # fmt: skip
    if VALUE < UNITS:
        real = (output < outputs)[None, :]
        many = tl.load(
            to_advantage + here[:, None] * outputs + output[None, :],
            mask=inside & real,
            other=0.0,
        )
        for begin in range(VALUE, UNITS, STEP):
            other = begin + tl.arange(0, STEP)
            out_of = tl.load(
                wa + copy * wa_copy + (other - VALUE)[:, None] * outputs + output[None, :],
                mask=real,
                other=0.0,
            )
            found = tl.dot(many, tl.trans(out_of), input_precision=PRECISION)
            total = pass_on(
                found, total, embedding, to_embedding, w, w_row, other, here, inside,
                FEATURES, UNITS, INPUTS, WEIGHTS, PRECISION,
            )  # fmt: skip
    if INPUTS:
        there = to_features + here[:, None] * FEATURES + feature[None, :]
        tl.store(there, total, mask=inside)


@triton.jit(do_not_specialize=_ANY)
def add_up(
    to_value, to_advantage, embedding, to_embedding, to_b, to_wv, to_bv, to_wa, to_ba,
    b_copy, wv_copy, bv_copy, wa_copy, ba_copy, rows, outputs,
    UNITS: tl.constexpr, VALUE: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr,
    TILE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Adds the gradients of all biases and of the outputs' weights, for some units."""
    copy, tile = tl.program_id(0), tl.program_id(1)
    unit = tile * TILE + tl.arange(0, TILE)
    row, output = tl.arange(0, ROWS), tl.arange(0, OUTPUTS)
    first = copy.to(tl.int64) * rows
    sums = tl.zeros((TILE,), dtype=tl.float32)
    if tile * TILE < VALUE:
        by_weight = tl.zeros((TILE,), dtype=tl.float32)
        shift = tl.zeros((ROWS,), dtype=tl.float32)
        for start in range(0, rows, ROWS):
            here = first + start + row
            inside = start + row < rows
            at = here[:, None] * UNITS + unit[None, :]
            units = tl.load(embedding + at, mask=inside[:, None], other=0.0)
            slope = tl.load(to_embedding + at, mask=inside[:, None], other=0.0)
            single = tl.load(to_value + here, mask=inside, other=0.0)
            sums += tl.sum(slope, axis=0)
            by_weight += tl.sum(units * single[:, None], axis=0)
            shift += single
        column = to_wv + copy * wv_copy + unit
        tl.store(column, tl.load(column) + by_weight)
        if tile == 0:
            place = to_bv + copy * bv_copy
            tl.store(place, tl.load(place) + tl.sum(shift, axis=0))
    else:
        real = output < outputs
        by_weights = tl.zeros((TILE, OUTPUTS), dtype=tl.float32)
        shifts = tl.zeros((OUTPUTS,), dtype=tl.float32)
        for start in range(0, rows, ROWS):
            here = first + start + row
            inside = start + row < rows
            at = here[:, None] * UNITS + unit[None, :]
            units = tl.load(embedding + at, mask=inside[:, None], other=0.0)
            slope = tl.load(to_embedding + at, mask=inside[:, None], other=0.0)
            many = tl.load(
                to_advantage + here[:, None] * outputs + output[None, :],
                mask=inside[:, None] & real[None, :],
                other=0.0,
            )
            sums += tl.sum(slope, axis=0)
            by_weights = tl.dot(tl.trans(units), many, by_weights, input_precision=PRECISION)
            shifts += tl.sum(many, axis=0)
        columns = to_wa + copy * wa_copy + (unit - VALUE)[:, None] * outputs + output[None, :]
        known = tl.load(columns, mask=real[None, :], other=0.0)
        tl.store(columns, known + by_weights, mask=real[None, :])
        if tile * TILE == VALUE:
            places = to_ba + copy * ba_copy + output
            tl.store(places, tl.load(places, mask=real, other=0.0) + shifts, mask=real)
    bias = to_b + copy * b_copy + unit
    tl.store(bias, tl.load(bias) + sums)
