"""The Triton kernels of `values.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def centre(
    flat, taken, bounds, out, best, width, heads, HEADS: tl.constexpr, OPTIONS: tl.constexpr
):
    """For each row and head: the chosen advantage minus the largest, and which that is."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, HEADS)
    real = head < heads
    first = tl.load(bounds + head, mask=real, other=0)
    last = tl.load(bounds + head + 1, mask=real, other=1)
    option = tl.arange(0, OPTIONS)
    column = first[:, None] + option[None, :]
    exists = column < last[:, None]
    scores = tl.load(flat + row * width + column, mask=exists, other=float("-inf"))
    largest, where = tl.max(scores, axis=1, return_indices=True)
    chosen = tl.load(taken + row * heads + head, mask=real, other=0)
    value = tl.load(flat + row * width + first + chosen, mask=real, other=0.0)
    tl.store(out + row * heads + head, value - largest, mask=real)
    tl.store(best + row * heads + head, where, mask=real)


@triton.jit
def centre_back(
    grad, taken, best, bounds, to_flat, width, heads, HEADS: tl.constexpr, OPTIONS: tl.constexpr
):
    """The gradient goes to the chosen option, and is taken from the best."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, HEADS)
    real = head < heads
    first = tl.load(bounds + head, mask=real, other=0)
    last = tl.load(bounds + head + 1, mask=real, other=0)
    option = tl.arange(0, OPTIONS)
    column = first[:, None] + option[None, :]
    slope = tl.load(grad + row * heads + head, mask=real, other=0.0)
    chosen = tl.load(taken + row * heads + head, mask=real, other=-1)
    largest = tl.load(best + row * heads + head, mask=real, other=-1)
    sign = (option[None, :] == chosen[:, None]).to(tl.float32)
    sign -= (option[None, :] == largest[:, None]).to(tl.float32)
    tl.store(to_flat + row * width + column, slope[:, None] * sign, mask=column < last[:, None])


@triton.jit
def soften(
    flat, value, temperature, bounds, total, entropy, rows_each, width, heads,
    HEADS: tl.constexpr, OPTIONS: tl.constexpr,
):  # fmt: skip
    """For each row: V plus every head's t log sum exp(A / t), and the entropies of softmax(A / t).

    A is relative to the head's largest; `rows_each` rows in a row belong to one member.
    """
    row = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, HEADS)
    real = head < heads
    first = tl.load(bounds + head, mask=real, other=0)
    last = tl.load(bounds + head + 1, mask=real, other=1)
    column = first[:, None] + tl.arange(0, OPTIONS)[None, :]
    exists = column < last[:, None]
    scores = tl.load(flat + row * width + column, mask=exists, other=float("-inf"))
    t = tl.load(temperature + (row // rows_each) * heads + head, mask=real, other=1.0)
    scaled = (scores - tl.max(scores, axis=1)[:, None]) / t[:, None]
    weight = tl.where(exists, tl.exp(scaled), 0.0)
    mass = tl.sum(weight, axis=1)
    log_mass = tl.log(mass)
    mean = tl.sum(tl.where(exists, weight * scaled, 0.0), axis=1) / mass
    gain = tl.sum(tl.where(real, t * log_mass, 0.0), axis=0)
    tl.store(total + row, tl.load(value + row) + gain)
    tl.store(entropy + row * heads + head, log_mass - mean, mask=real)
