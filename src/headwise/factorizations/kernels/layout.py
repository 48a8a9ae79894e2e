"""The Triton kernel of `layout.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def in_use(action, action_row, parents, lows, highs, out, size, heads, depth, BLOCK: tl.constexpr):
    """One for each head all of whose ancestors lie within their bounds, else zero."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    row, head = lane // heads, lane % heads
    met = tl.zeros((BLOCK,), dtype=tl.float32) + 1.0
    for level in range(0, depth):
        at = head * depth + level
        parent = tl.load(parents + at, mask=inside, other=0)
        number = tl.load(action + row * action_row + parent, mask=inside, other=0).to(tl.float32)
        low = tl.load(lows + at, mask=inside, other=0.0)
        high = tl.load(highs + at, mask=inside, other=0.0)
        met = tl.where((low <= number) & (number < high), met, 0.0)
    tl.store(out + lane, met, mask=inside)
