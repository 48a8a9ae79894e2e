"""The Triton kernel of `diagnostics.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def measure_movement(
    log_ratio, ratio, valid, clip, sums, kl_by_head, outside_by_head,
    rows, columns, clipped, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A member's mean divergence, share of clipped ratios and joint ratio; the first two by head.

    Rows that are not valid do not count in the former, and do in the means of each head.
    """
    member = tl.program_id(0)
    first_row = member.to(tl.int64) * rows
    log_ratio, ratio = log_ratio + first_row * columns, ratio + first_row * clipped
    valid = valid + first_row
    column = tl.arange(0, COLUMNS)
    real, counted = column < columns, column < clipped
    bound = tl.load(clip + member)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    joint = tl.zeros((ROWS,), dtype=tl.float32)
    near = tl.zeros((ROWS,), dtype=tl.float32)
    far = tl.zeros((ROWS,), dtype=tl.float32)
    near_each = tl.zeros((COLUMNS,), dtype=tl.float32)
    far_each = tl.zeros((COLUMNS,), dtype=tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        exists = row < rows
        weight = tl.load(valid + row, mask=exists, other=0.0)
        logs = tl.load(
            log_ratio + row[:, None] * columns + column[None, :],
            mask=exists[:, None] & real[None, :], other=0.0,
        )  # fmt: skip
        r = tl.load(
            ratio + row[:, None] * clipped + column[None, :],
            mask=exists[:, None] & counted[None, :], other=1.0,
        )  # fmt: skip
        kl = tl.exp(logs) - 1.0 - logs
        outside = tl.where(tl.abs(r - 1.0) > bound, 1.0, 0.0)
        total += weight
        joint += weight * tl.exp(tl.sum(logs, axis=1))
        near += weight * tl.sum(kl, axis=1)
        far += weight * tl.sum(outside, axis=1)
        near_each += tl.sum(kl, axis=0)
        far_each += tl.sum(outside, axis=0)
    weights = tl.sum(total, axis=0)
    some = tl.maximum(weights, 1.0)
    here, each = sums + member, tl.num_programs(0)
    tl.store(here, tl.sum(near, axis=0) / some)
    tl.store(here + each, tl.sum(far, axis=0) / tl.maximum(weights * clipped, 1.0))
    tl.store(here + 2 * each, tl.sum(joint, axis=0) / some)
    tl.store(kl_by_head + member * columns + column, near_each / rows, mask=real)
    tl.store(outside_by_head + member * clipped + column, far_each / rows, mask=counted)
