"""The Triton kernels of `sac.py` and `temperature.py`. Imported only where there is CUDA."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def temperatures(log_alpha, group, out, size, heads, groups, BLOCK: tl.constexpr):
    """The temperature of each head, from the logarithms of the groups'."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    mine = tl.load(group + lane % heads, mask=inside, other=0)
    x = tl.load(log_alpha + (lane // heads) * groups + mine, mask=inside, other=0.0)
    tl.store(out + lane, tl.exp(x), mask=inside)


@triton.jit
def surplus(
    entropy, in_use, fraction, most, of_range, group, mean, target, out, grad, rows, heads, groups,
    IN_USE: tl.constexpr, ROWS: tl.constexpr, HEADS: tl.constexpr, GROUPS: tl.constexpr,
):  # fmt: skip
    """How far the mean entropy of a member's heads is above its target, summed over groups."""
    member = tl.program_id(0)
    head = tl.arange(0, HEADS)
    real = head < heads
    total = tl.zeros((HEADS,), dtype=tl.float32)
    used = tl.zeros((HEADS,), dtype=tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & real[None, :]
        at = (member * rows + row)[:, None] * heads + head[None, :]
        total += tl.sum(tl.load(entropy + at, mask=inside, other=0.0), axis=0)
        if IN_USE:
            used += tl.sum(tl.load(in_use + at, mask=inside, other=0.0), axis=0)
    average = total / rows
    wanted = tl.load(fraction + member) * tl.load(most + head, mask=real, other=0.0)
    wanted += tl.load(of_range + head, mask=real, other=0.0)
    if IN_USE:
        wanted = wanted * (used / rows)
    tl.store(mean + member * heads + head, average, mask=real)
    tl.store(target + member * heads + head, wanted, mask=real)
    number = tl.arange(0, GROUPS)
    mine = tl.load(group + head, mask=real, other=-1)
    belongs = mine[:, None] == number[None, :]
    above = tl.sum(tl.where(belongs, (average - wanted)[:, None], 0.0), axis=0)
    tl.store(out + member * groups + number, above, mask=number < groups)
    tl.store(grad + member * groups + number, above, mask=number < groups)


@triton.jit
def relaxation(clock, out, start, log_decay, floor):
    """How soft relaxed options are by now: it decays from a start to a floor."""
    count = tl.load(clock).to(tl.float32)
    tl.store(out, tl.maximum(start * tl.exp(count * log_decay), floor))


@triton.jit
def td_error(
    predicted, following, reward, discount, error, slope, size, rows_each, columns, scale,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """What both critics predict (members, 2, rows_each, columns) minus what is known better."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    column, above = lane % columns, lane // columns
    row = (above // (2 * rows_each)) * rows_each + above % rows_each
    known = tl.load(reward + row, mask=inside, other=0.0)
    later = tl.load(following + row * columns + column, mask=inside, other=0.0)
    known += tl.load(discount + row, mask=inside, other=0.0) * later
    apart = tl.load(predicted + lane, mask=inside, other=0.0) - known
    tl.store(error + lane, apart, mask=inside)
    tl.store(slope + lane, apart * scale, mask=inside)
