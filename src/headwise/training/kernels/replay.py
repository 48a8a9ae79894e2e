"""The Triton kernels of `replay.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def write(
    store, following, counts, obs, action, reward, next_obs, terminated, truncated, valid,
    rows, width, obs_size, action_size, OBS: tl.constexpr, ACTION: tl.constexpr,
):  # fmt: skip
    """One step of each slot (axis 1) of each member (axis 0) to where the slot writes next.

    The cursors then point to the place after it.
    """
    slots = tl.num_programs(1)
    slot = tl.program_id(0) * slots + tl.program_id(1)
    if tl.load(valid + slot) == 0:
        return
    place = tl.load(following + slot)
    tl.store(following + slot, (place + 1) % rows)
    tl.store(counts + slot, tl.minimum(tl.load(counts + slot) + 1, rows))
    row = tl.program_id(0) * rows + place
    to = store + (row * slots + tl.program_id(1)) * width
    lane = tl.arange(0, OBS)
    of_obs = lane < obs_size
    tl.store(to + lane, tl.load(obs + slot * obs_size + lane, mask=of_obs), mask=of_obs)
    to += obs_size
    head = tl.arange(0, ACTION)
    of_action = head < action_size
    tl.store(to + head, tl.load(action + slot * action_size + head, mask=of_action), mask=of_action)
    to += action_size
    tl.store(to, tl.load(reward + slot))
    to += 1
    tl.store(to + lane, tl.load(next_obs + slot * obs_size + lane, mask=of_obs), mask=of_obs)
    to += obs_size
    tl.store(to, tl.load(terminated + slot).to(tl.float32))
    tl.store(to + 1, tl.load(truncated + slot).to(tl.float32))


@triton.jit
def draw(
    store, following, counts, uniform, gamma, drawn, discount,
    rows, slots, width, batch, terminated, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Some rows (axis 1) of each member's batch (axis 0), from two uniform numbers each."""
    member = tl.program_id(0)
    number = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    wanted = number < batch
    at = member * batch + number
    slot = (tl.load(uniform + 2 * at, mask=wanted, other=0.0) * slots).to(tl.int64)
    count = tl.load(counts + member * slots + slot)
    usable = tl.maximum(count, 1)
    age = (tl.load(uniform + 2 * at + 1, mask=wanted, other=0.0) * usable.to(tl.float32)).to(
        tl.int64
    )
    # The ring begins `count` before the next place to write; a full turn keeps it positive.
    row = (tl.load(following + member * slots + slot) - count + age + rows) % rows
    lane = tl.arange(0, WIDTH)
    inside = wanted[:, None] & (lane < width)[None, :]
    source = store + ((member * rows + row) * slots + slot) * width
    numbers = tl.load(source[:, None] + lane[None, :], mask=inside)
    tl.store(drawn + at[:, None] * width + lane[None, :], numbers, mask=inside)
    ended = tl.load(source + terminated, mask=wanted, other=0.0)
    tl.store(discount + at, tl.load(gamma + member) * (1.0 - ended), mask=wanted)
