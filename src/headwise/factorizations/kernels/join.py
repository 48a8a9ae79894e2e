"""The Triton kernels of `join.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def join(
    obs, action, visible, owner, match, scale, shift, out,
    obs_row, action_row, size, copies, rows_each, obs_size, embedded, BLOCK: tl.constexpr,
):  # fmt: skip
    """Observations and embedded actions side by side, (members, copies, rows_each, both)."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    width = obs_size + embedded
    column, above = lane % width, lane // width
    copy = (above // rows_each) % copies
    row = (above // (rows_each * copies)) * rows_each + above % rows_each
    seen = inside & (column < obs_size)
    x = tl.load(obs + row * obs_row + column, mask=seen, other=0.0)
    acted = inside & (column >= obs_size)
    place = column - obs_size
    head = tl.load(owner + place, mask=acted, other=0)
    value = tl.load(action + row * action_row + head, mask=acted, other=0.0)
    option = tl.load(match + place, mask=acted, other=0.0)
    number = value * tl.load(scale + place, mask=acted, other=0.0)
    number += tl.load(shift + place, mask=acted, other=0.0)
    number = tl.where(option >= 0.0, tl.where(value == option, 1.0, 0.0), number)
    shown = tl.load(visible + copy * embedded + place, mask=acted, other=0.0)
    number = tl.where(shown > 0.0, number, 0.0)  # what is hidden need not even be a number
    tl.store(out + lane, tl.where(acted, number, x), mask=inside)


@triton.jit
def join_back(
    grad, visible, column_of, match, scale, by_action, to_action,
    size, copies, rows_each, obs_size, embedded, heads, ADD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient by the numbers of the actions, added up over copies; options have none.

    ADD: what else the actions had an effect on is added.
    """
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    row, head = lane // heads, lane % heads
    place = tl.load(column_of + head, mask=inside, other=0)
    is_number = inside & (tl.load(match + place, mask=inside, other=0.0) < 0.0)
    first = (row // rows_each) * copies * rows_each + row % rows_each
    width = obs_size + embedded
    slope = tl.zeros((BLOCK,), dtype=tl.float32)
    for copy in range(0, copies):
        at = grad + (first + copy * rows_each) * width + obs_size + place
        part = tl.load(at, mask=is_number, other=0.0)
        slope += part * tl.load(visible + copy * embedded + place, mask=is_number, other=0.0)
    slope *= tl.load(scale + place, mask=is_number, other=0.0)
    if ADD:
        slope += tl.load(by_action + lane, mask=inside, other=0.0)
    tl.store(to_action + lane, slope, mask=inside)


@triton.jit
def join_own(
    obs, numbers, out, obs_row, numbers_row, size, copies, rows_each, obs_size, columns,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Observations beside one number each, (members, copies, columns, rows_each, both)."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    width = obs_size + 1
    place, above = lane % width, lane // width
    column = (above // rows_each) % columns
    row = (above // (rows_each * columns * copies)) * rows_each + above % rows_each
    seen = inside & (place < obs_size)
    own = inside & (place == obs_size)
    x = tl.load(obs + row * obs_row + place, mask=seen, other=0.0)
    number = tl.load(numbers + row * numbers_row + column, mask=own, other=0.0)
    tl.store(out + lane, tl.where(own, number, x), mask=inside)


@triton.jit
def join_own_back(
    grad, to_numbers, size, copies, rows_each, obs_size, columns, BLOCK: tl.constexpr
):
    """The gradient by the numbers, added up over copies."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    row, column = lane // columns, lane % columns
    first = ((row // rows_each) * copies * columns + column) * rows_each + row % rows_each
    slope = tl.zeros((BLOCK,), dtype=tl.float32)
    for copy in range(0, copies):
        at = (first + copy * columns * rows_each) * (obs_size + 1) + obs_size
        slope += tl.load(grad + at, mask=inside, other=0.0)
    tl.store(to_numbers + lane, slope, mask=inside)


@triton.jit
def relax_join(
    log_probs, noise, temperature, obs, unit, bounds, choices, ranges, column_of, match, scale,
    shift, soft, out, noise_row, obs_row, unit_row, rows_each, obs_size, embedded, num_choices,
    num_ranges, most, OBS: tl.constexpr, MOST: tl.constexpr, RANGES: tl.constexpr,
):  # fmt: skip
    """For both critics: observations, options with the most of a Gumbel-softmax, and numbers."""
    row = tl.program_id(0).to(tl.int64)
    width = obs_size + embedded
    first = out + ((row // rows_each) * 2 * rows_each + row % rows_each) * width
    second = first + rows_each * width
    column = tl.arange(0, OBS)
    x = tl.load(obs + row * obs_row + column, mask=column < obs_size, other=0.0)
    tl.store(first + column, x, mask=column < obs_size)
    tl.store(second + column, x, mask=column < obs_size)
    option = tl.arange(0, MOST)
    exists = option < most
    softness = tl.load(temperature)
    for choice in range(0, num_choices):
        here = (row * num_choices + choice) * most
        u = tl.load(noise + row * noise_row + choice * most + option, mask=exists, other=0.5)
        u = tl.minimum(tl.maximum(u, 1e-6), 1.0 - 1e-6)
        logits = tl.load(log_probs + here + option, mask=exists, other=float("-inf"))
        scores = (logits - tl.log(-tl.log(u))) / softness
        scores = tl.where(exists, scores, float("-inf"))
        weight = tl.exp(scores - tl.max(scores, axis=0))
        weight = weight / tl.sum(weight, axis=0)
        best = tl.argmax(weight, axis=0)
        tl.store(soft + here + option, weight, mask=exists)
        place = tl.load(column_of + tl.load(choices + choice))
        count = tl.load(bounds + choice + 1) - tl.load(bounds + choice)
        hot = tl.load(match + place) >= 0.0
        number = best.to(tl.float32) * tl.load(scale + place) + tl.load(shift + place)
        embedding = tl.where(hot, tl.where(option == best, 1.0, 0.0), number)
        written = option < tl.where(hot, count, 1)
        tl.store(first + obs_size + place + option, embedding, mask=written)
        tl.store(second + obs_size + place + option, embedding, mask=written)
    number = tl.arange(0, RANGES)
    real = number < num_ranges
    head = tl.load(ranges + number, mask=real, other=0)
    place = tl.load(column_of + head, mask=real, other=0)
    value = tl.load(unit + row * unit_row + head, mask=real, other=0.0)
    tl.store(first + obs_size + place, value, mask=real)
    tl.store(second + obs_size + place, value, mask=real)


@triton.jit
def relax_join_back(
    grad, soft, temperature, bounds, choices, ranges, column_of, match, scale,
    to_log_probs, to_unit, size, rows_each, obs_size, embedded, num_choices, num_ranges, most,
    ROWS: tl.constexpr,
):  # fmt: skip
    """The gradient by log-probabilities, as if options were a Gumbel-softmax, and by numbers."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < size
    head = tl.program_id(1)
    heads = num_choices + num_ranges
    width = obs_size + embedded
    first = ((row // rows_each) * 2 * rows_each + row % rows_each) * width + obs_size
    second = first + rows_each * width
    nothing = tl.zeros((ROWS,), dtype=tl.float32)
    if head < num_choices:
        column = tl.load(choices + head)
        place = tl.load(column_of + column)
        hot = tl.load(match + place) >= 0.0
        step = tl.where(hot, 1, 0)
        slope = tl.load(scale + place)
        softness = tl.load(temperature)
        count = tl.load(bounds + head + 1) - tl.load(bounds + head)
        here = (row * num_choices + head) * most
        inner = nothing
        for option in range(0, count):
            at = place + step * option
            own = tl.load(grad + first + at, mask=inside, other=0.0)
            own += tl.load(grad + second + at, mask=inside, other=0.0)
            own *= tl.where(hot, 1.0, slope * option)
            inner += own * tl.load(soft + here + option, mask=inside, other=0.0)
        for option in range(0, count):
            at = place + step * option
            own = tl.load(grad + first + at, mask=inside, other=0.0)
            own += tl.load(grad + second + at, mask=inside, other=0.0)
            own *= tl.where(hot, 1.0, slope * option)
            weight = tl.load(soft + here + option, mask=inside, other=0.0)
            tl.store(to_log_probs + here + option, weight * (own - inner) / softness, mask=inside)
        for option in range(count, most):
            tl.store(to_log_probs + here + option, nothing, mask=inside)
        tl.store(to_unit + row * heads + column, nothing, mask=inside)
    else:
        column = tl.load(ranges + head - num_choices)
        place = tl.load(column_of + column)
        own = tl.load(grad + first + place, mask=inside, other=0.0)
        own += tl.load(grad + second + place, mask=inside, other=0.0)
        tl.store(to_unit + row * heads + column, own, mask=inside)
