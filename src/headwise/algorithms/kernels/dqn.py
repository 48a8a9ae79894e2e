"""The Triton kernels of `exploring.py` and `td_error.py`. Imported only with a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def explore(
    best, uniform, chances, bounds, legal, legal_row, start, end, clock, span, out,
    size, each, heads, count, LEGAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The best option of each head of each slot, or by chance any of its options.

    A member has `each` numbers, and twice as many uniforms: coins first, then which option. Of n
    options each has the chance `chances[n]`; the first k have k times that, rounded once.
    """
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    member, head = lane // each, lane % heads
    coin_at = member * 2 * each + lane % each
    coin = tl.load(uniform + coin_at, mask=inside, other=1.0)
    u = tl.load(uniform + coin_at + each, mask=inside, other=0.0)
    first = tl.load(bounds + head, mask=inside, other=0)
    existing = tl.load(bounds + head + 1, mask=inside, other=1) - first
    number = existing
    may = legal + (lane // heads) * legal_row + head * count
    if LEGAL:
        number = existing * 0
        for option in range(0, count):
            allowed = tl.load(may + option, mask=inside & (option < existing), other=0) != 0
            number += allowed.to(tl.int32)
    none = number == 0  # where nothing is legal, any column is as good as any other
    number = tl.where(none, count, number)
    chance = tl.load(chances + number, mask=inside, other=0.0)
    threshold = u * (number.to(tl.float32) * chance)
    passed = existing * 0
    below = existing * 0
    for option in range(0, count):
        allowed = option < existing
        if LEGAL:
            allowed = tl.load(may + option, mask=inside & allowed, other=0) != 0
        passed += (allowed | none).to(tl.int32)
        below += (passed.to(tl.float32) * chance <= threshold).to(tl.int32)
    share = tl.where(span > 0.0, tl.minimum(tl.load(clock).to(tl.float32) / span, 1.0), 1.0)
    begins = tl.load(start + member, mask=inside, other=0.0)
    ends = tl.load(end + member, mask=inside, other=0.0)
    epsilon = begins + (ends - begins) * share
    greedy = tl.load(best + lane, mask=inside, other=0.0)
    tl.store(out + lane, tl.where(coin < epsilon, below.to(tl.float32), greedy), mask=inside)


@triton.jit
def slope(
    predicted, reward, discount, following, in_use, out, scale,
    reward_member, reward_row, reward_column, discount_member, discount_row,
    following_member, following_row, following_column, each, columns,
    IN_USE: tl.constexpr, HUBER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The slope of a member's loss by each of its `each` predictions, `columns` in a row.

    An error counts `scale`; with IN_USE, only where that is one, and `scale` over how many are.
    """
    member = tl.program_id(0)
    lane = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < each
    row, column = lane // columns, lane % columns
    at = reward + member * reward_member + row * reward_row + column * reward_column
    known = tl.load(at, mask=inside, other=0.0)
    at = discount + member * discount_member + row * discount_row
    keeps = tl.load(at, mask=inside, other=0.0)
    at = following + member * following_member + row * following_row + column * following_column
    target = known + keeps * tl.load(at, mask=inside, other=0.0)
    error = tl.load(predicted + member * each + lane, mask=inside, other=0.0) - target
    if HUBER:
        # Written so that what is not a number stays none.
        error = tl.where(error > 1.0, 1.0, tl.where(error < -1.0, -1.0, error))
    else:
        error = 2.0 * error
    weight = tl.zeros((BLOCK,), dtype=tl.float32) + scale
    if IN_USE:
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for begin in range(0, each, BLOCK):
            other = begin + tl.arange(0, BLOCK)
            total += tl.load(in_use + member * each + other, mask=other < each, other=0.0)
        used = tl.load(in_use + member * each + lane, mask=inside, other=0.0)
        weight = used * (weight / tl.maximum(tl.sum(total, axis=0), 1.0))
    tl.store(out + member * each + lane, error * weight, mask=inside)
