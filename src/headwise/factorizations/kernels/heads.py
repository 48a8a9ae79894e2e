"""The Triton kernels of `heads.py` and `soft.py`. Imported only where there is a CUDA device."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def pick(log_probs, uniform, uniform_row, out, judged, size, heads, count, BLOCK: tl.constexpr):
    """The first option whose cumulative probability exceeds a share of the total, and its own."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < size
    mine = log_probs + lane * count
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for option in range(0, count):
        total += tl.exp(tl.load(mine + option, mask=inside, other=0.0))
    u = tl.load(uniform + (lane // heads) * uniform_row + lane % heads, mask=inside, other=0.0)
    threshold = u * total
    reached = tl.zeros((BLOCK,), dtype=tl.float32)
    below = tl.zeros((BLOCK,), dtype=tl.float32)
    for option in range(0, count):
        reached += tl.exp(tl.load(mine + option, mask=inside, other=0.0))
        below += tl.where(reached <= threshold, 1.0, 0.0)
    tl.store(out + lane, below, mask=inside)
    log_prob = tl.load(mine + below.to(tl.int32), mask=inside & (below < count), other=0.0)
    tl.store(judged + lane, log_prob, mask=inside)


@triton.jit
def relax(
    log_probs, uniform, uniform_row, temperature, hard, soft, size, heads, count,
    OPTIONS: tl.constexpr,
):  # fmt: skip
    """A Gumbel-softmax for each head, and the option with the most of it."""
    at = tl.program_id(0)
    option = tl.arange(0, OPTIONS)
    exists = option < count
    u = tl.load(
        uniform + (at // heads) * uniform_row + (at % heads) * count + option,
        mask=exists, other=0.5,
    )  # fmt: skip
    u = tl.minimum(tl.maximum(u, 1e-6), 1.0 - 1e-6)
    logits = tl.load(log_probs + at * count + option, mask=exists, other=float("-inf"))
    scores = (logits - tl.log(-tl.log(u))) / tl.load(temperature)
    scores = tl.where(exists, scores, float("-inf"))
    weight = tl.exp(scores - tl.max(scores, axis=0))
    weight = weight / tl.sum(weight, axis=0)
    best = tl.argmax(weight, axis=0)
    tl.store(soft + at * count + option, weight, mask=exists)
    tl.store(hard + at * count + option, (option == best).to(tl.float32), mask=exists)
