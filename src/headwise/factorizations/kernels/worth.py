"""The Triton kernels of `worth.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def worth(
    values, entropy, alpha, out, which, size, rows_each, heads, HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The lesser of twin values (members, 2, rows_each), plus what randomness is worth."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    member = lane // rows_each
    at = values + lane + member * rows_each
    first = tl.load(at, mask=inside, other=0.0)
    second = tl.load(at + rows_each, mask=inside, other=0.0)
    total = tl.minimum(first, second)
    if HEADS:
        more = tl.zeros((BLOCK,), dtype=tl.float32)
        for head in range(0, heads):
            t = tl.load(alpha + member * heads + head, mask=inside, other=0.0)
            more += t * tl.load(entropy + lane * heads + head, mask=inside, other=0.0)
        total += more
    tl.store(out + lane, total, mask=inside)
    tl.store(which + lane, tl.where(second < first, 1.0, 0.0), mask=inside)


@triton.jit
def worth_back(
    grad, alpha, which, to_values, to_entropy, size, rows_each, heads, HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient goes to the lesser value, and to entropies by their temperatures."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    member = lane // rows_each
    slope = tl.load(grad + lane, mask=inside, other=0.0)
    is_second = tl.load(which + lane, mask=inside, other=0.0) > 0.0
    at = to_values + lane + member * rows_each
    tl.store(at, tl.where(is_second, 0.0, slope), mask=inside)
    tl.store(at + rows_each, tl.where(is_second, slope, 0.0), mask=inside)
    if HEADS:
        for head in range(0, heads):
            t = tl.load(alpha + member * heads + head, mask=inside, other=0.0)
            tl.store(to_entropy + lane * heads + head, slope * t, mask=inside)


@triton.jit
def soft_branches(
    flat, value, alpha, of_ranges, bounds, choices, ranges, total, entropy, which,
    rows_each, width, num_choices, num_ranges, STACKED: tl.constexpr,
    HEADS: tl.constexpr, MOST: tl.constexpr, RANGES: tl.constexpr,
):  # fmt: skip
    """The lesser critic's V plus every head's t log sum exp(A / t), plus t times Ranges' entropy.

    Entropies of options are those of the first critic's softmax(A / t), A relative to the largest.
    STACKED: advantages are (members, 2, num_choices, rows_each, width), each head's by themselves;
    else they are (members, 2, rows_each, width), one head's options after the other's.
    """
    row = tl.program_id(0).to(tl.int64)
    member = row // rows_each
    heads = num_choices + num_ranges
    head = tl.arange(0, HEADS)
    real = head < num_choices
    start = tl.load(bounds + head, mask=real, other=0)
    end = tl.load(bounds + head + 1, mask=real, other=1)
    option = tl.arange(0, MOST)[None, :]
    exists = option < (end - start)[:, None]
    place = tl.load(choices + head, mask=real, other=0)
    t = tl.load(alpha + member * heads + place, mask=real, other=1.0)
    first = member * 2 * rows_each + row % rows_each
    second = first + rows_each
    mine = first * width + start
    apart = rows_each * width
    if STACKED:
        network = member * 2 * num_choices + tl.where(real, head, 0)
        mine = (network * rows_each + row % rows_each) * width
        apart = num_choices * rows_each * width
    column = mine[:, None] + option
    scores = tl.load(flat + column, mask=exists, other=float("-inf"))
    scaled = (scores - tl.max(scores, axis=1)[:, None]) / t[:, None]
    weight = tl.where(exists, tl.exp(scaled), 0.0)
    mass = tl.sum(weight, axis=1)
    log_mass = tl.log(mass)
    mean = tl.sum(tl.where(exists, weight * scaled, 0.0), axis=1) / mass
    tl.store(entropy + row * heads + place, log_mass - mean, mask=real)
    by_first = tl.load(value + first) + tl.sum(tl.where(real, t * log_mass, 0.0), axis=0)
    scores = tl.load(flat + apart + column, mask=exists, other=float("-inf"))
    scaled = (scores - tl.max(scores, axis=1)[:, None]) / t[:, None]
    log_mass = tl.log(tl.sum(tl.where(exists, tl.exp(scaled), 0.0), axis=1))
    by_second = tl.load(value + second) + tl.sum(tl.where(real, t * log_mass, 0.0), axis=0)
    number = tl.arange(0, RANGES)
    there = number < num_ranges
    place = tl.load(ranges + number, mask=there, other=0)
    random = tl.load(of_ranges + row * num_ranges + number, mask=there, other=0.0)
    tl.store(entropy + row * heads + place, random, mask=there)
    more = random * tl.load(alpha + member * heads + place, mask=there, other=0.0)
    tl.store(total + row, tl.minimum(by_first, by_second) + tl.sum(more, axis=0))
    tl.store(which + row, tl.where(by_second < by_first, 1, 0))


@triton.jit
def soft_branches_back(
    grad, flat, alpha, which, bounds, choices, ranges, to_flat, to_value, to_ranges,
    rows_each, width, num_choices, num_ranges, STACKED: tl.constexpr,
    HEADS: tl.constexpr, MOST: tl.constexpr, RANGES: tl.constexpr,
):  # fmt: skip
    """The gradient by the lesser critic's outputs, and by the entropy of Ranges."""
    row = tl.program_id(0).to(tl.int64)
    member = row // rows_each
    heads = num_choices + num_ranges
    slope = tl.load(grad + row)
    chosen = tl.load(which + row)
    lesser = (member * 2 + chosen) * rows_each + row % rows_each
    other = (member * 2 + 1 - chosen) * rows_each + row % rows_each
    tl.store(to_value + lesser, slope)
    tl.store(to_value + other, slope * 0.0)
    head = tl.arange(0, HEADS)
    real = head < num_choices
    start = tl.load(bounds + head, mask=real, other=0)
    end = tl.load(bounds + head + 1, mask=real, other=0)
    option = tl.arange(0, MOST)
    exists = option[None, :] < (end - start)[:, None]
    written = exists
    lesser_options = lesser * width + start
    other_options = other * width + start
    if STACKED:  # what no option stands for has a gradient too: none
        written = real[:, None] & (option[None, :] < width)
        network = (member * 2 + chosen) * num_choices + tl.where(real, head, 0)
        lesser_options = (network * rows_each + row % rows_each) * width
        network = (member * 2 + 1 - chosen) * num_choices + tl.where(real, head, 0)
        other_options = (network * rows_each + row % rows_each) * width
    column = lesser_options[:, None] + option[None, :]
    place = tl.load(choices + head, mask=real, other=0)
    t = tl.load(alpha + member * heads + place, mask=real, other=1.0)
    # Heads that only pad have one option, so that no largest is minus infinity.
    padded = tl.where(real[:, None], float("-inf"), 0.0)
    scores = tl.load(flat + column, mask=exists, other=0.0)
    scores = tl.where(exists, scores, padded)
    largest, best = tl.max(scores, axis=1, return_indices=True)
    weight = tl.exp((scores - largest[:, None]) / t[:, None])
    weight = weight / tl.sum(weight, axis=1)[:, None]
    by_score = weight - tl.where(option[None, :] == best[:, None], 1.0, 0.0)
    by_score = tl.where(exists, by_score, 0.0)
    tl.store(to_flat + column, slope * by_score, mask=written)
    column = other_options[:, None] + option[None, :]
    tl.store(to_flat + column, by_score * 0.0, mask=written)
    number = tl.arange(0, RANGES)
    there = number < num_ranges
    place = tl.load(ranges + number, mask=there, other=0)
    t = tl.load(alpha + member * heads + place, mask=there, other=0.0)
    tl.store(to_ranges + row * num_ranges + number, slope * t, mask=there)


@triton.jit
def draw_branches(
    flat, alpha, uniform, numbers, bounds, choices, ranges, out, uniform_row, numbers_row,
    size, rows_each, width, num_choices, num_ranges, STACKED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Options drawn from the first critic's softmax(A / t), beside the numbers."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < size
    head = tl.program_id(1)
    heads = num_choices + num_ranges
    member = row // rows_each
    if head < num_choices:
        place = tl.load(choices + head)
        start = tl.load(bounds + head)
        count = tl.load(bounds + head + 1) - start
        t = tl.load(alpha + member * heads + place, mask=inside, other=1.0)
        mine = flat + (row + member * rows_each) * width + start
        if STACKED:
            network = member * 2 * num_choices + head
            mine = flat + (network * rows_each + row % rows_each) * width
        nothing = tl.zeros((ROWS,), dtype=tl.float32)
        largest = nothing + float("-inf")
        for option in range(0, count):
            largest = tl.maximum(largest, tl.load(mine + option, mask=inside, other=0.0))
        mass = nothing
        for option in range(0, count):
            mass += tl.exp((tl.load(mine + option, mask=inside, other=0.0) - largest) / t)
        log_mass = tl.log(mass)
        total = nothing
        for option in range(0, count):
            scaled = (tl.load(mine + option, mask=inside, other=0.0) - largest) / t
            total += tl.exp(scaled - log_mass)
        u = tl.load(uniform + row * uniform_row + head, mask=inside, other=0.5)
        threshold = u * total
        reached = nothing
        below = nothing
        for option in range(0, count):
            scaled = (tl.load(mine + option, mask=inside, other=0.0) - largest) / t
            reached += tl.exp(scaled - log_mass)
            below += tl.where(reached <= threshold, 1.0, 0.0)
        tl.store(out + row * heads + place, below, mask=inside)
    else:
        column = head - num_choices
        x = tl.load(numbers + row * numbers_row + column, mask=inside, other=0.0)
        tl.store(out + row * heads + tl.load(ranges + column), x, mask=inside)


@triton.jit
def worth_each(
    values, entropy, alpha, heads_of, out, which, size, rows_each, columns, heads,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The lesser of each column's twins (members, 2, columns, rows_each), plus t times entropy."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    row, column = lane // columns, lane % columns
    member = row // rows_each
    at = values + (member * 2 * columns + column) * rows_each + row % rows_each
    first = tl.load(at, mask=inside, other=0.0)
    second = tl.load(at + columns * rows_each, mask=inside, other=0.0)
    place = tl.load(heads_of + column, mask=inside, other=0)
    t = tl.load(alpha + member * heads + place, mask=inside, other=0.0)
    more = t * tl.load(entropy + lane, mask=inside, other=0.0)
    tl.store(out + lane, tl.minimum(first, second) + more, mask=inside)
    tl.store(which + lane, tl.where(second < first, 1.0, 0.0), mask=inside)


@triton.jit
def worth_each_back(
    grad, alpha, heads_of, which, to_values, to_entropy, size, rows_each, columns, heads,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient goes to the lesser value, and to the entropy by its temperature."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    row, column = lane // columns, lane % columns
    member = row // rows_each
    slope = tl.load(grad + lane, mask=inside, other=0.0)
    is_second = tl.load(which + lane, mask=inside, other=0.0) > 0.0
    at = to_values + (member * 2 * columns + column) * rows_each + row % rows_each
    tl.store(at, tl.where(is_second, 0.0, slope), mask=inside)
    tl.store(at + columns * rows_each, tl.where(is_second, slope, 0.0), mask=inside)
    place = tl.load(heads_of + column, mask=inside, other=0)
    t = tl.load(alpha + member * heads + place, mask=inside, other=0.0)
    tl.store(to_entropy + lane, slope * t, mask=inside)


@triton.jit
def soft_each(
    flat, value, values, of_ranges, alpha, bounds, choices, ranges, total, entropy,
    size, rows_each, width, num_choices, num_ranges, VALUES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Every head's own soft value and entropy, from stacked networks.

    A Choice has the lesser of its twins' V + t log sum exp(A / t), and the entropy of the first
    one's softmax(A / t); a Range has the lesser of its twins' Q, plus t times its entropy.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < size
    head = tl.program_id(1)
    heads = num_choices + num_ranges
    member = row // rows_each
    nothing = tl.zeros((ROWS,), dtype=tl.float32)
    if head < num_choices:
        place = tl.load(choices + head)
        count = tl.load(bounds + head + 1) - tl.load(bounds + head)
        t = tl.load(alpha + member * heads + place, mask=inside, other=1.0)
        own = (member * 2 * num_choices + head) * rows_each + row % rows_each
        mine = flat + own * width
        largest = nothing + float("-inf")
        for option in range(0, count):
            largest = tl.maximum(largest, tl.load(mine + option, mask=inside, other=0.0))
        mass = nothing
        mean = nothing
        for option in range(0, count):
            scaled = (tl.load(mine + option, mask=inside, other=0.0) - largest) / t
            weight = tl.exp(scaled)
            mass += weight
            mean += weight * scaled
        log_mass = tl.log(mass)
        tl.store(entropy + row * heads + place, log_mass - mean / mass, mask=inside)
        if VALUES:
            first = tl.load(value + own, mask=inside, other=0.0) + t * log_mass
            own += num_choices * rows_each
            mine = flat + own * width
            largest = nothing + float("-inf")
            for option in range(0, count):
                largest = tl.maximum(largest, tl.load(mine + option, mask=inside, other=0.0))
            mass = nothing
            for option in range(0, count):
                score = tl.load(mine + option, mask=inside, other=0.0)
                mass += tl.exp((score - largest) / t)
            second = tl.load(value + own, mask=inside, other=0.0) + t * tl.log(mass)
            tl.store(total + row * heads + place, tl.minimum(first, second), mask=inside)
    else:
        column = head - num_choices
        place = tl.load(ranges + column)
        random = tl.load(of_ranges + row * num_ranges + column, mask=inside, other=0.0)
        tl.store(entropy + row * heads + place, random, mask=inside)
        if VALUES:
            own = (member * 2 * num_ranges + column) * rows_each + row % rows_each
            first = tl.load(values + own, mask=inside, other=0.0)
            second = tl.load(values + own + num_ranges * rows_each, mask=inside, other=0.0)
            t = tl.load(alpha + member * heads + place, mask=inside, other=0.0)
            whole = tl.minimum(first, second) + t * random
            tl.store(total + row * heads + place, whole, mask=inside)
