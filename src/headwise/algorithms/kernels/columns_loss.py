"""The Triton kernel of `columns_loss.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def clip_columns(
    log_prob, before, advantage, entropy, weight, share, clip, entropy_coef,
    ratio, sums, to_log_prob, to_entropy,
    rows, columns, advantages, advantage_step, ratio_columns, rows_each,
    JOINT: tl.constexpr, WEIGHTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A part of a member's rows: their loss, and its slopes by log-probabilities and entropies.

    Comparisons are written so that what is not a number stays so.
    """
    member, part = tl.program_id(0), tl.program_id(1)
    first_row = member.to(tl.int64) * rows
    first = first_row * columns
    log_prob, before, entropy = log_prob + first, before + first, entropy + first
    to_log_prob, to_entropy = to_log_prob + first, to_entropy + first
    advantage, share = advantage + first_row * advantages, share + first_row
    ratio = ratio + first_row * ratio_columns
    column = tl.arange(0, COLUMNS)
    real = column < columns
    weigh = tl.where(real, 1.0, 0.0)
    if WEIGHTS:
        weigh = tl.load(weight + column, mask=real, other=0.0)
    bound = tl.load(clip + member)
    for_entropy = tl.load(entropy_coef + member)
    surrogates = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    entropies = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, rows_each, ROWS):
        row = part * rows_each + start + tl.arange(0, ROWS)
        exists = row < rows
        inside = exists[:, None] & real[None, :]
        at = row[:, None] * columns + column[None, :]
        counts = tl.load(share + row, mask=exists, other=0.0)[:, None]
        log_ratio = tl.load(log_prob + at, mask=inside, other=0.0)
        log_ratio -= tl.load(before + at, mask=inside, other=0.0)
        clipped = inside
        if JOINT:  # all columns of a row are then alike, and the first one counts
            log_ratio = tl.sum(log_ratio, axis=1)[:, None] + tl.zeros_like(log_ratio)
            part_of_row = exists[:, None] & (column < advantages)[None, :]
            worth_at = row[:, None] * advantages + column[None, :]
            worth = tl.load(advantage + worth_at, mask=part_of_row, other=0.0)
            worth = tl.sum(worth, axis=1)[:, None] + tl.zeros_like(log_ratio)
            clipped = inside & (column == 0)[None, :]
        else:
            worth_at = row[:, None] * advantages + column[None, :] * advantage_step
            worth = tl.load(advantage + worth_at, mask=inside, other=0.0)
        r = tl.exp(tl.where(log_ratio > 20.0, 20.0, log_ratio))
        held = tl.where(r < 1.0 - bound, 1.0 - bound, r)
        held = tl.where(held > 1.0 + bound, 1.0 + bound, held) * worth
        free = r * worth
        slope = tl.where((free > held) | (log_ratio > 20.0), 0.0, free)
        smaller = tl.where(free > held, held, free)
        surrogates += tl.where(clipped, counts * smaller, 0.0)
        random = tl.load(entropy + at, mask=inside, other=0.0)
        entropies += counts * (random * weigh[None, :])
        tl.store(ratio + row[:, None] * ratio_columns + column[None, :], r, mask=clipped)
        tl.store(to_log_prob + at, -counts * slope, mask=inside)
        tl.store(to_entropy + at, -for_entropy * counts * weigh[None, :], mask=inside)
    surrogate = tl.sum(tl.sum(surrogates, axis=1), axis=0)
    entropy_sum = tl.sum(tl.sum(entropies, axis=1), axis=0)
    here = sums + member * tl.num_programs(1) + part
    each = tl.num_programs(0) * tl.num_programs(1)
    tl.store(here, -surrogate - for_entropy * entropy_sum)
    tl.store(here + each, surrogate)
    tl.store(here + 2 * each, entropy_sum)
