"""The Triton kernels of `chain_draw.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def draw_number(
    outputs, uniform, action, entropy, next_action, next_entropy, spread,
    uniform_row, size, width, heads, head, column, low, half,
    COPY: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """One Range of actions so far, from mean and free spread, and minus its log-density.

    COPY: the other heads are copied; else they are where they belong.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < size
    u = tl.load(uniform + row * uniform_row + column, mask=inside, other=0.5)
    mine = outputs + row * width
    free = libdevice.tanh(tl.load(mine + 1, mask=inside, other=0.0))
    wide = free * half + (low + half)
    normal = libdevice.erfinv(u * 2.0 + (5.9604644775390625e-08 - 1.0)) * 1.4142135623730951
    far = tl.exp(wide) * normal
    x = tl.load(mine, mask=inside, other=0.0) + far
    # log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x))
    softplus = tl.maximum(-2.0 * x, 0.0) + libdevice.log1p(tl.exp(-tl.abs(2.0 * x)))
    slope = 2.0 * (0.6931471805599453 - x - softplus)
    density = -0.5 * normal * normal - wide - 0.9189385332046727 - slope
    tl.store(next_action + row * heads + head, libdevice.tanh(x), mask=inside)
    tl.store(next_entropy + row * heads + head, -density, mask=inside)
    if COPY:
        tl.store(spread + row, far, mask=inside)
        for other in range(0, heads):
            at = row * heads + other
            copied = inside & (other != head)
            x = tl.load(action + at, mask=copied, other=0.0)
            tl.store(next_action + at, x, mask=copied)
            x = tl.load(entropy + at, mask=copied, other=0.0)
            tl.store(next_entropy + at, x, mask=copied)


@triton.jit
def draw_number_back(
    outputs, action, spread, by_action, by_entropy, to_outputs, size, width, heads, head, half,
    UNIT: tl.constexpr, ENTROPY: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The gradient by mean and free spread."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < size
    at = row * heads + head
    value = tl.load(action + at, mask=inside, other=0.0)
    by_mean = tl.zeros((ROWS,), dtype=tl.float32)
    by_density = tl.zeros((ROWS,), dtype=tl.float32)
    if UNIT:
        by_mean = tl.load(by_action + at, mask=inside, other=0.0) * (1.0 - value * value)
    if ENTROPY:
        by_density = -tl.load(by_entropy + at, mask=inside, other=0.0)
        by_mean += by_density * 2.0 * value
    far = tl.load(spread + row, mask=inside, other=0.0)
    here = row * width
    free = libdevice.tanh(tl.load(outputs + here + 1, mask=inside, other=0.0))
    by_free = (by_mean * far - by_density) * half * (1.0 - free * free)
    tl.store(to_outputs + here, by_mean, mask=inside)
    tl.store(to_outputs + here + 1, by_free, mask=inside)
    for other in range(2, width):  # outputs that belong to no parameter
        tl.store(to_outputs + here + other, by_free * 0.0, mask=inside)


@triton.jit
def draw_option(
    scores, alpha, uniform, action, raw, log_prob, uniform_row, size, rows_each, width, heads, head,
    column, count, SCALED: tl.constexpr, JUDGED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Writes one Choice into actions so far, drawn from softmax(scores / t).

    SCALED: there is a t; else it is one. JUDGED: also as a raw action, and its log-probability.
    A thread goes through the options of a row one after the other, so that sums are taken in the
    order in which the CPU takes them.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < size
    nothing = tl.zeros((ROWS,), dtype=tl.float32)
    t = nothing + 1.0
    if SCALED:
        t = tl.load(alpha + (row // rows_each) * heads + head, mask=inside, other=1.0)
    mine = scores + row * width
    largest = nothing + float("-inf")
    for option in range(0, count):
        largest = tl.maximum(largest, tl.load(mine + option, mask=inside, other=0.0) / t)
    mass = nothing
    for option in range(0, count):
        mass += tl.exp(tl.load(mine + option, mask=inside, other=0.0) / t - largest)
    log_mass = tl.log(mass)
    total = nothing
    for option in range(0, count):
        scaled = tl.load(mine + option, mask=inside, other=0.0) / t
        total += tl.exp(scaled - largest - log_mass)
    u = tl.load(uniform + row * uniform_row + column, mask=inside, other=0.5)
    threshold = u * total
    reached = nothing
    below = nothing
    for option in range(0, count):
        scaled = tl.load(mine + option, mask=inside, other=0.0) / t
        reached += tl.exp(scaled - largest - log_mass)
        below += tl.where(reached <= threshold, 1.0, 0.0)
    tl.store(action + row * heads + head, below, mask=inside)
    if JUDGED:
        score = tl.load(mine + below.to(tl.int32), mask=inside & (below < count), other=0.0) / t
        tl.store(raw + row * heads + head, below, mask=inside)
        tl.store(log_prob + row * heads + head, score - largest - log_mass, mask=inside)


@triton.jit
def sample_number(
    outputs, free, uniform, unit, raw, log_prob, uniform_row, size, rows_each, width, heads, head,
    column, free_each, low, half, FROM_STATE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Writes one Range into actions so far: in both forms, and its log-density.

    FROM_STATE: the free spread is an output; else a member has it, whatever the state.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < size
    u = tl.load(uniform + row * uniform_row + column, mask=inside, other=0.5)
    mine = outputs + row * width
    where = free + (row // rows_each) * free_each
    if FROM_STATE:
        where = mine + 1
    wide = libdevice.tanh(tl.load(where, mask=inside, other=0.0)) * half + (low + half)
    normal = libdevice.erfinv(u * 2.0 + (5.9604644775390625e-08 - 1.0)) * 1.4142135623730951
    x = tl.load(mine, mask=inside, other=0.0) + tl.exp(wide) * normal
    # log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x))
    softplus = tl.maximum(-2.0 * x, 0.0) + libdevice.log1p(tl.exp(-tl.abs(2.0 * x)))
    slope = 2.0 * (0.6931471805599453 - x - softplus)
    density = -0.5 * normal * normal - wide - 0.9189385332046727 - slope
    at = row * heads + head
    tl.store(unit + at, libdevice.tanh(x), mask=inside)
    tl.store(raw + at, x, mask=inside)
    tl.store(log_prob + at, density, mask=inside)
