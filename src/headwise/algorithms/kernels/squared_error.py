"""The Triton kernel of `squared_error.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def add_squares(
    predicted, target, share, slope, sums, rows, columns, numbers_each, BLOCK: tl.constexpr
):
    """A part of a member's numbers: the sum of weighted squared errors, and its slopes."""
    member, part = tl.program_id(0), tl.program_id(1)
    first_row = member.to(tl.int64) * rows
    first = first_row * columns
    predicted, target, slope = predicted + first, target + first, slope + first
    share = share + first_row
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, numbers_each, BLOCK):
        lane = part * numbers_each + start + tl.arange(0, BLOCK)
        inside = lane < rows * columns
        error = tl.load(predicted + lane, mask=inside, other=0.0)
        error -= tl.load(target + lane, mask=inside, other=0.0)
        weighted = error * tl.load(share + lane // columns, mask=inside, other=0.0)
        total += error * weighted
        tl.store(slope + lane, 2.0 * weighted, mask=inside)
    tl.store(sums + member * tl.num_programs(1) + part, tl.sum(total, axis=0))
