"""The Triton kernels of `centring.py` and `values.py`. Imported only with a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def centre(
    flat, value, taken, masses, in_use, legal, bounds, out, best,
    taken_row, legal_row, rows_each, width, heads, most,
    STACKED: tl.constexpr, MEAN: tl.constexpr, LEGAL: tl.constexpr, IN_USE: tl.constexpr,
    VALUE: tl.constexpr, SUMS: tl.constexpr, HEADS: tl.constexpr, OPTIONS: tl.constexpr,
):  # fmt: skip
    """For each row and head: the chosen advantage minus the largest, or minus the mean.

    STACKED: advantages are (members, heads, rows_each, width), each head's network by itself; else
    they are (rows, width), one head's options after the other's. SUMS: one number for the row, not
    one for each head. VALUE: "none" is added, one that is "shared" by the heads, or each its "own".
    """
    row = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, HEADS)
    option = tl.arange(0, OPTIONS)[None, :]
    real = head < heads
    first = tl.load(bounds + head, mask=real, other=0)
    last = tl.load(bounds + head + 1, mask=real, other=0)
    exists = real[:, None] & (option < (last - first)[:, None])
    place = row * heads + head
    own = ((row // rows_each) * heads + head) * rows_each + row % rows_each
    start = row * width + first
    if STACKED:
        start = own * width
    scores = tl.load(flat + start[:, None] + option, mask=exists, other=float("-inf"))
    if LEGAL:
        at = legal + row * legal_row + head[:, None] * most + option
        forbidden = tl.load(at, mask=exists, other=1) == 0
        scores = tl.where(forbidden, -1e9, scores)
    chosen = tl.load(taken + row * taken_row + head, mask=real, other=0).to(tl.int32)
    is_chosen = exists & (option == chosen[:, None])
    picked = tl.sum(tl.where(is_chosen, scores, 0.0), axis=1)
    if MEAN:
        mass = tl.load(masses + place[:, None] * most + option, mask=exists, other=0.0)
        advantage = picked - tl.sum(tl.where(exists, mass * scores, 0.0), axis=1)
    else:
        largest, where = tl.max(scores, axis=1, return_indices=True)
        tl.store(best + place, where, mask=real)
        advantage = picked - largest
    if IN_USE:
        advantage = advantage * tl.load(in_use + place, mask=real, other=0.0)
    if SUMS:
        total = tl.sum(tl.where(real, advantage, 0.0), axis=0)
        if VALUE == "shared":
            total += tl.load(value + row)
        tl.store(out + row, total)
    else:
        if VALUE == "shared":
            advantage += tl.load(value + row)
        if VALUE == "own":
            advantage += tl.load(value + own, mask=real, other=0.0)
        tl.store(out + place, advantage, mask=real)


@triton.jit
def centre_back(
    grad, taken, masses, in_use, legal, best, bounds, to_flat, to_value,
    taken_row, legal_row, rows_each, width, heads, most,
    STACKED: tl.constexpr, MEAN: tl.constexpr, LEGAL: tl.constexpr, IN_USE: tl.constexpr,
    VALUE: tl.constexpr, SUMS: tl.constexpr, HEADS: tl.constexpr, OPTIONS: tl.constexpr,
):  # fmt: skip
    """The gradient goes to the chosen option, and is taken from the best, or from all by mass."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, HEADS)
    option = tl.arange(0, OPTIONS)[None, :]
    real = head < heads
    first = tl.load(bounds + head, mask=real, other=0)
    last = tl.load(bounds + head + 1, mask=real, other=0)
    exists = real[:, None] & (option < (last - first)[:, None])
    place = row * heads + head
    own = ((row // rows_each) * heads + head) * rows_each + row % rows_each
    if SUMS:
        slope = tl.load(grad + row) + tl.zeros((HEADS,), dtype=tl.float32)
    else:
        slope = tl.load(grad + place, mask=real, other=0.0)
        if VALUE == "shared":
            tl.store(to_value + row, tl.sum(slope, axis=0))
        if VALUE == "own":
            tl.store(to_value + own, slope, mask=real)
    if IN_USE:
        slope = slope * tl.load(in_use + place, mask=real, other=0.0)
    chosen = tl.load(taken + row * taken_row + head, mask=real, other=-1).to(tl.int32)
    sign = (option == chosen[:, None]).to(tl.float32)
    if MEAN:
        sign -= tl.load(masses + place[:, None] * most + option, mask=exists, other=0.0)
    else:
        largest = tl.load(best + place, mask=real, other=-1)
        sign -= (option == largest[:, None]).to(tl.float32)
    change = tl.where(exists, slope[:, None] * sign, 0.0)
    if LEGAL:
        at = legal + row * legal_row + head[:, None] * most + option
        change = tl.where(tl.load(at, mask=exists, other=1) == 0, 0.0, change)
    if STACKED:  # what no option stands for has no gradient either
        tl.store(
            to_flat + own[:, None] * width + option, change, mask=real[:, None] & (option < width)
        )
    else:
        tl.store(to_flat + row * width + first[:, None] + option, change, mask=exists)


@triton.jit
def best_options(
    flat, legal, bounds, out, out_row, legal_row, rows_each, width, heads, most,
    STACKED: tl.constexpr, LEGAL: tl.constexpr, HEADS: tl.constexpr, OPTIONS: tl.constexpr,
):  # fmt: skip
    """For each row and head the option with the largest advantage, the first of equally large."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, HEADS)
    option = tl.arange(0, OPTIONS)[None, :]
    real = head < heads
    first = tl.load(bounds + head, mask=real, other=0)
    last = tl.load(bounds + head + 1, mask=real, other=0)
    exists = real[:, None] & (option < (last - first)[:, None])
    start = row * width + first
    if STACKED:
        start = (((row // rows_each) * heads + head) * rows_each + row % rows_each) * width
    scores = tl.load(flat + start[:, None] + option, mask=exists, other=float("-inf"))
    if LEGAL:
        at = legal + row * legal_row + head[:, None] * most + option
        scores = tl.where(tl.load(at, mask=exists, other=1) == 0, -1e9, scores)
    # What is not a number counts as the largest: nothing that does not exist may be chosen.
    scores = tl.where(scores != scores, float("inf"), scores)
    _, where = tl.max(scores, axis=1, return_indices=True)
    tl.store(out + row * out_row + head, where.to(tl.float32), mask=real)
