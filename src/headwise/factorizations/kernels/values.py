"""The Triton kernels of `centring.py` and `values.py`. Imported only with a CUDA device.

A program takes some rows: axes are (row, head, option).
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def what_exists(bounds, row, head, option, rows, heads):
    """Which heads of which rows there are, where a head's options begin, and which it has."""
    real = (row < rows) & (head < heads)
    first = tl.load(bounds + head, mask=head < heads, other=0)
    last = tl.load(bounds + head + 1, mask=head < heads, other=0)
    return real, first, real[:, :, None] & (option < (last - first)[:, :, None])


@triton.jit
def own_place(row, head, heads, rows_each):
    """Where a head has its numbers of a row, if they are (members, heads, rows_each)."""
    return (row // rows_each * heads + head) * rows_each + row % rows_each


@triton.jit
def centre(
    flat, value, taken, masses, in_use, legal, bounds, out, best,
    rows, taken_row, legal_row, rows_each, width, heads, most,
    STACKED: tl.constexpr, MEAN: tl.constexpr, LEGAL: tl.constexpr, IN_USE: tl.constexpr,
    VALUE: tl.constexpr, SUMS: tl.constexpr,
    ROWS: tl.constexpr, HEADS: tl.constexpr, OPTIONS: tl.constexpr,
):  # fmt: skip
    """For each row and head: the chosen advantage minus the largest, or minus the mean.

    STACKED: advantages are (members, heads, rows_each, width), each head's network by itself; else
    they are (rows, width), one head's options after the other's. SUMS: one number for the row, not
    one for each head. VALUE: "none" is added, one that is "shared" by the heads, or each its "own".
    """
    line = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    row, head = line[:, None], tl.arange(0, HEADS)[None, :]
    option = tl.arange(0, OPTIONS)[None, None, :]
    real, first, exists = what_exists(bounds, row, head, option, rows, heads)
    place = row * heads + head
    own = own_place(row, head, heads, rows_each)
    start = row * width + first
    if STACKED:
        start = own * width
    scores = tl.load(flat + start[:, :, None] + option, mask=exists, other=float("-inf"))
    if LEGAL:
        at = legal + (row * legal_row + head * most)[:, :, None] + option
        forbidden = tl.load(at, mask=exists, other=1) == 0
        scores = tl.where(forbidden, -1e30, scores)
    chosen = tl.load(taken + row * taken_row + head, mask=real, other=0).to(tl.int32)
    is_chosen = exists & (option == chosen[:, :, None])
    picked = tl.sum(tl.where(is_chosen, scores, 0.0), axis=2)
    if MEAN:
        mass = tl.load(masses + place[:, :, None] * most + option, mask=exists, other=0.0)
        advantage = picked - tl.sum(tl.where(exists, mass * scores, 0.0), axis=2)
    else:
        largest, where = tl.max(scores, axis=2, return_indices=True)
        tl.store(best + place, where, mask=real)
        advantage = picked - largest
    if IN_USE:
        advantage = advantage * tl.load(in_use + place, mask=real, other=0.0)
    if SUMS:
        total = tl.sum(tl.where(real, advantage, 0.0), axis=1)
        if VALUE == "shared":
            total += tl.load(value + line, mask=line < rows, other=0.0)
        tl.store(out + line, total, mask=line < rows)
    else:
        if VALUE == "shared":
            advantage += tl.load(value + row, mask=row < rows, other=0.0)
        if VALUE == "own":
            advantage += tl.load(value + own, mask=real, other=0.0)
        tl.store(out + place, advantage, mask=real)


@triton.jit
def centre_back(
    grad, taken, masses, in_use, legal, best, bounds, to_flat, to_value,
    rows, taken_row, legal_row, rows_each, width, heads, most,
    STACKED: tl.constexpr, MEAN: tl.constexpr, LEGAL: tl.constexpr, IN_USE: tl.constexpr,
    VALUE: tl.constexpr, SUMS: tl.constexpr,
    ROWS: tl.constexpr, HEADS: tl.constexpr, OPTIONS: tl.constexpr,
):  # fmt: skip
    """The gradient goes to the chosen option, and is taken from the best, or from all by mass."""
    line = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    row, head = line[:, None], tl.arange(0, HEADS)[None, :]
    option = tl.arange(0, OPTIONS)[None, None, :]
    real, first, exists = what_exists(bounds, row, head, option, rows, heads)
    place = row * heads + head
    own = own_place(row, head, heads, rows_each)
    if SUMS:
        slope = tl.load(grad + row, mask=row < rows, other=0.0)
        slope += tl.zeros((ROWS, HEADS), dtype=tl.float32)
    else:
        slope = tl.load(grad + place, mask=real, other=0.0)
        if VALUE == "shared":
            tl.store(to_value + line, tl.sum(slope, axis=1), mask=line < rows)
        if VALUE == "own":
            tl.store(to_value + own, slope, mask=real)
    if IN_USE:
        slope = slope * tl.load(in_use + place, mask=real, other=0.0)
    chosen = tl.load(taken + row * taken_row + head, mask=real, other=-1).to(tl.int32)
    sign = (option == chosen[:, :, None]).to(tl.float32)
    if MEAN:
        sign -= tl.load(masses + place[:, :, None] * most + option, mask=exists, other=0.0)
    else:
        largest = tl.load(best + place, mask=real, other=-1)
        sign -= (option == largest[:, :, None]).to(tl.float32)
    change = tl.where(exists, slope[:, :, None] * sign, 0.0)
    if LEGAL:
        at = legal + (row * legal_row + head * most)[:, :, None] + option
        change = tl.where(tl.load(at, mask=exists, other=1) == 0, 0.0, change)
    if STACKED:  # what no option stands for has no gradient either
        inside = real[:, :, None] & (option < width)
        tl.store(to_flat + (own * width)[:, :, None] + option, change, mask=inside)
    else:
        tl.store(to_flat + (row * width + first)[:, :, None] + option, change, mask=exists)


@triton.jit
def best_options(
    flat, legal, bounds, out, rows, out_row, legal_row, rows_each, width, heads, most,
    STACKED: tl.constexpr, LEGAL: tl.constexpr,
    ROWS: tl.constexpr, HEADS: tl.constexpr, OPTIONS: tl.constexpr,
):  # fmt: skip
    """For each row and head the option with the largest advantage, the first of equally large."""
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    head = tl.arange(0, HEADS)[None, :]
    option = tl.arange(0, OPTIONS)[None, None, :]
    real, first, exists = what_exists(bounds, row, head, option, rows, heads)
    start = row * width + first
    if STACKED:
        start = own_place(row, head, heads, rows_each) * width
    scores = tl.load(flat + start[:, :, None] + option, mask=exists, other=float("-inf"))
    if LEGAL:
        at = legal + (row * legal_row + head * most)[:, :, None] + option
        scores = tl.where(tl.load(at, mask=exists, other=1) == 0, -1e30, scores)
    # What is not a number counts as the largest: nothing that does not exist may be chosen.
    scores = tl.where(scores != scores, float("inf"), scores)
    _, where = tl.max(scores, axis=2, return_indices=True)
    tl.store(out + row * out_row + head, where.to(tl.float32), mask=real)
