"""The Triton kernel of `options_loss.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def judge(
    flat, bounds, legal, taken, before, advantage, share, old, clip, entropy_coef, kl_coef,
    log_probs, log_prob, ratio, sums, to_flat,
    rows, heads, width, count, advantages, advantage_step, lanes_each,
    LEGAL: tl.constexpr, OLD: tl.constexpr, LANES: tl.constexpr, OPTIONS: tl.constexpr,
):  # fmt: skip
    """A part of a member's rows: what `core/options_loss.h` says, from logits without padding.

    A lane is a head of a row. Comparisons are written so that what is not a number stays so.
    """
    member, part = tl.program_id(0), tl.program_id(1)
    first_row = member.to(tl.int64) * rows
    first_lane = first_row * heads
    flat, to_flat = flat + first_row * width, to_flat + first_row * width
    advantage, share = advantage + first_row * advantages, share + first_row
    taken, before = taken + first_lane, before + first_lane
    log_prob, ratio = log_prob + first_lane, ratio + first_lane
    log_probs = log_probs + first_lane * count
    legal, old = legal + first_lane * count, old + first_lane * count
    option = tl.arange(0, OPTIONS)
    fits = (option < count)[None, :]
    bound = tl.load(clip + member)
    for_entropy = tl.load(entropy_coef + member)
    for_divergence = tl.load(kl_coef + member) / rows
    surrogates = tl.zeros((LANES,), dtype=tl.float32)
    entropies = tl.zeros((LANES,), dtype=tl.float32)
    divergences = tl.zeros((LANES,), dtype=tl.float32)
    for start in range(0, lanes_each, LANES):
        lane = part * lanes_each + start + tl.arange(0, LANES)
        inside = lane < rows * heads
        head = lane % heads
        row = lane // heads
        padded = lane[:, None] * count + option[None, :]
        first = tl.load(bounds + head, mask=inside, other=0)
        last = tl.load(bounds + head + 1, mask=inside, other=0)
        column = first[:, None] + option[None, :]
        exists = column < last[:, None]
        flat_at = row[:, None] * width + column
        scores = tl.load(flat + flat_at, mask=exists, other=-1e30)
        allowed = exists
        if LEGAL:
            allowed = exists & (tl.load(legal + padded, mask=exists, other=0) != 0)
            scores = tl.where(allowed, scores, -1e30)

        scores -= tl.max(scores, axis=1)[:, None]
        weight = tl.where(exists, tl.exp(scores), 0.0)
        mass = tl.where(inside, tl.sum(weight, axis=1), 1.0)
        p = weight / mass[:, None]
        log_p = tl.where(exists, scores - tl.log(mass)[:, None], -1e30)
        entropy = -tl.sum(p * log_p, axis=1)

        chosen = tl.load(taken + lane, mask=inside, other=0.0)
        hit = option[None, :].to(tl.float32) == chosen[:, None]
        own = tl.sum(tl.where(hit & exists, log_p, 0.0), axis=1)
        counts = tl.load(share + row, mask=inside, other=0.0)
        worth = tl.load(
            advantage + row * advantages + head * advantage_step, mask=inside, other=0.0
        )
        log_ratio = own - tl.load(before + lane, mask=inside, other=0.0)
        r = tl.exp(tl.where(log_ratio > 20.0, 20.0, log_ratio))
        held = tl.where(r < 1.0 - bound, 1.0 - bound, r)
        held = tl.where(held > 1.0 + bound, 1.0 + bound, held) * worth
        free = r * worth
        slope = tl.where((free > held) | (log_ratio > 20.0), 0.0, free)
        surrogates += counts * tl.where(free > held, held, free)
        entropies += counts * tl.where(inside, entropy, 0.0)

        by_entropy = p * (log_p + entropy[:, None])
        to = slope[:, None] * (p - tl.where(hit, 1.0, 0.0)) + for_entropy * by_entropy
        to = counts[:, None] * to
        if OLD:
            log_q = tl.load(old + padded, mask=exists, other=-1e30)
            q = tl.where(exists, tl.exp(log_q), 0.0)
            divergences += tl.sum(q * (log_q - log_p), axis=1)
            to += for_divergence * (p * tl.sum(q, axis=1)[:, None] - q)
        tl.store(to_flat + flat_at, tl.where(allowed, to, 0.0), mask=exists)
        tl.store(log_probs + padded, log_p, mask=inside[:, None] & fits)
        tl.store(log_prob + lane, own, mask=inside)
        tl.store(ratio + lane, r, mask=inside)
    surrogate, entropy_sum = tl.sum(surrogates, axis=0), tl.sum(entropies, axis=0)
    divergence = tl.sum(divergences, axis=0)
    loss = for_divergence * divergence - for_entropy * entropy_sum - surrogate
    here = sums + member * tl.num_programs(1) + part
    each = tl.num_programs(0) * tl.num_programs(1)
    tl.store(here, loss)
    tl.store(here + each, surrogate)
    tl.store(here + 2 * each, entropy_sum)
    tl.store(here + 3 * each, divergence / rows)
