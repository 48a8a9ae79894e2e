"""The Triton kernels of `values.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def centre(
    flat, options, bounds, out, best, width, heads, HEADS: tl.constexpr, OPTIONS: tl.constexpr
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
    chosen = tl.load(options + row * heads + head, mask=real, other=0)
    value = tl.load(flat + row * width + first + chosen, mask=real, other=0.0)
    tl.store(out + row * heads + head, value - largest, mask=real)
    tl.store(best + row * heads + head, where, mask=real)


@triton.jit
def centre_back(
    grad, options, best, bounds, to_flat, width, heads, HEADS: tl.constexpr, OPTIONS: tl.constexpr
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
    chosen = tl.load(options + row * heads + head, mask=real, other=-1)
    largest = tl.load(best + row * heads + head, mask=real, other=-1)
    sign = (option[None, :] == chosen[:, None]).to(tl.float32)
    sign -= (option[None, :] == largest[:, None]).to(tl.float32)
    tl.store(to_flat + row * width + column, slope[:, None] * sign, mask=column < last[:, None])
