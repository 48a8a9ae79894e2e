"""The Triton kernels of `soft_draw.py`. Imported only where there is a CUDA device.

A program has one head of some rows, and a thread goes through the options of a row one after the
other, so that sums are taken in the order in which the CPU takes them.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def draw_heads(
    outputs, uniform, uniform_row, bounds, choices, ranges, unit, entropy, log_probs, spread,
    rows, rows_each, width, num_choices, num_ranges, most, low, half,
    STACKED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Actions from the outputs of a policy network, and how random each of their heads is.

    A row of outputs has mean and free spread of every Range, then the logits of every Choice.
    STACKED: there are only Ranges, and each has a network: (members, heads, rows_each, width).
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    head = tl.program_id(1)
    heads = num_choices + num_ranges
    u = tl.load(uniform + row * uniform_row + head, mask=inside, other=0.5)
    if head < num_choices:
        first = tl.load(bounds + head)
        count = tl.load(bounds + head + 1) - first
        mine = outputs + row * width + 2 * num_ranges + first
        kept = log_probs + (row * num_choices + head) * most
        nothing = tl.zeros((ROWS,), dtype=tl.float32)
        largest = nothing + float("-inf")
        for option in range(0, count):
            largest = tl.maximum(largest, tl.load(mine + option, mask=inside, other=0.0))
        mass = nothing
        for option in range(0, count):
            mass += tl.exp(tl.load(mine + option, mask=inside, other=0.0) - largest)
        log_mass = tl.log(mass)
        total = nothing
        random = nothing
        for option in range(0, count):
            log_prob = tl.load(mine + option, mask=inside, other=0.0) - largest - log_mass
            prob = tl.exp(log_prob)
            total += prob
            random -= prob * log_prob
            tl.store(kept + option, log_prob, mask=inside)
        for option in range(count, most):
            tl.store(kept + option, nothing - 1e30, mask=inside)
        threshold = u * total
        reached = nothing
        below = nothing
        for option in range(0, count):
            score = tl.load(mine + option, mask=inside, other=0.0) - largest - log_mass
            reached += tl.exp(score)
            below += tl.where(reached <= threshold, 1.0, 0.0)
        at = row * heads + tl.load(choices + head)
        tl.store(unit + at, below, mask=inside)
        tl.store(entropy + at, random, mask=inside)
    else:
        column = head - num_choices
        mine = outputs + row * width + 2 * column
        if STACKED:
            network = (row // rows_each) * num_ranges + column
            mine = outputs + (network * rows_each + row % rows_each) * width
        free = libdevice.tanh(tl.load(mine + 1, mask=inside, other=0.0))
        wide = free * half + (low + half)
        normal = libdevice.erfinv(u * 2.0 + (5.9604644775390625e-08 - 1.0)) * 1.4142135623730951
        far = tl.exp(wide) * normal
        x = tl.load(mine, mask=inside, other=0.0) + far
        # log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x))
        softplus = tl.maximum(-2.0 * x, 0.0) + libdevice.log1p(tl.exp(-tl.abs(2.0 * x)))
        slope = 2.0 * (0.6931471805599453 - x - softplus)
        density = -0.5 * normal * normal - wide - 0.9189385332046727 - slope
        at = row * heads + tl.load(ranges + column)
        tl.store(unit + at, libdevice.tanh(x), mask=inside)
        tl.store(entropy + at, -density, mask=inside)
        tl.store(spread + row * num_ranges + column, far, mask=inside)


@triton.jit
def draw_heads_back(
    outputs, unit, entropy, log_probs, spread, by_unit, by_entropy, by_log_probs,
    bounds, choices, ranges, to_outputs,
    rows, rows_each, width, num_choices, num_ranges, most, half,
    UNIT: tl.constexpr, ENTROPY: tl.constexpr, LOG_PROBS: tl.constexpr,
    STACKED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The gradient by the outputs."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    head = tl.program_id(1)
    heads = num_choices + num_ranges
    nothing = tl.zeros((ROWS,), dtype=tl.float32)
    if head < num_choices:
        first = tl.load(bounds + head)
        count = tl.load(bounds + head + 1) - first
        here = (row * num_choices + head) * most
        at = row * heads + tl.load(choices + head)
        mine = to_outputs + row * width + 2 * num_ranges + first
        random = tl.load(entropy + at, mask=inside, other=0.0)
        by_random = nothing
        if ENTROPY:
            by_random = tl.load(by_entropy + at, mask=inside, other=0.0)
        total = nothing
        if LOG_PROBS:
            for option in range(0, count):
                total += tl.load(by_log_probs + here + option, mask=inside, other=0.0)
        for option in range(0, count):
            log_prob = tl.load(log_probs + here + option, mask=inside, other=0.0)
            prob = tl.exp(log_prob)
            slope = -by_random * prob * (log_prob + random)
            if LOG_PROBS:
                own = tl.load(by_log_probs + here + option, mask=inside, other=0.0)
                slope += own - prob * total
            tl.store(mine + option, slope, mask=inside)
    else:
        column = head - num_choices
        at = row * heads + tl.load(ranges + column)
        value = tl.load(unit + at, mask=inside, other=0.0)
        by_mean = nothing
        by_density = nothing
        if UNIT:
            by_mean = tl.load(by_unit + at, mask=inside, other=0.0) * (1.0 - value * value)
        if ENTROPY:
            by_density = -tl.load(by_entropy + at, mask=inside, other=0.0)
            by_mean += by_density * 2.0 * value
        far = tl.load(spread + row * num_ranges + column, mask=inside, other=0.0)
        here = row * width + 2 * column
        if STACKED:
            network = (row // rows_each) * num_ranges + column
            here = (network * rows_each + row % rows_each) * width
        free = libdevice.tanh(tl.load(outputs + here + 1, mask=inside, other=0.0))
        by_free = (by_mean * far - by_density) * half * (1.0 - free * free)
        tl.store(to_outputs + here, by_mean, mask=inside)
        tl.store(to_outputs + here + 1, by_free, mask=inside)
