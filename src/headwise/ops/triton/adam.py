"""Adam on a GPU as two kernels: the lengths of gradients, and the step."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import math

import torch
import triton
import triton.language as tl

from headwise.ops.buffers import Buffer
from headwise.ops.triton.functions import expm1

_BLOCK, _WARPS = 512, 2


@triton.jit
def sum_squares(gradient, partial, count, stride, ticks, size, BLOCK: tl.constexpr):
    """The sum of squares of each block of each member's gradient; and the members' steps go on."""
    member, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gradient + member * stride + at, mask=at < size, other=0.0)
    tl.store(partial + member * tl.num_programs(1) + block, tl.sum(g * g, axis=0))
    if block == 0:
        tl.store(count + member * ticks, tl.load(count + member * ticks) + 1)


@triton.jit
def step(
    values, gradient, mean, square, follower, partial, count, learning_rate, alive, norm,
    stride, ticks, ones, size, blocks, beta1, beta2, rest1, rest2, log_beta1, log_beta2, eps,
    max_norm, tau,
    FOLLOWED: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """A step of each block; a member whose gradient is not finite is left as it is from then on."""
    member, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    part = tl.arange(0, BLOCKS)
    parts = tl.load(partial + member * blocks + part, mask=part < blocks, other=0.0)
    length = tl.sqrt(tl.sum(parts, axis=0))
    lives = tl.where(length < float("inf"), tl.load(alive + member * ones), 0.0)
    if block == 0:
        tl.store(norm + member * ones, length)
        tl.store(alive + member * ones, lives)
    steps = tl.load(count + member * ticks).to(tl.float32)
    correction1, correction2 = -expm1(steps * log_beta1), -expm1(steps * log_beta2)
    scale = tl.where((max_norm > 0.0) & (length > max_norm), max_norm / (length + 1e-6), 1.0)
    at, zero = block * BLOCK + tl.arange(0, BLOCK), tl.zeros((BLOCK,), dtype=tl.float32)
    moves, at = (at < size) & (zero + lives > 0.0), member * stride + at
    g = tl.load(gradient + at, mask=moves, other=0.0) * scale
    m = beta1 * tl.load(mean + at, mask=moves, other=0.0) + rest1 * g
    v = beta2 * tl.load(square + at, mask=moves, other=0.0) + rest2 * g * g
    tl.store(mean + at, m, mask=moves)
    tl.store(square + at, v, mask=moves)
    size_of_step = tl.load(learning_rate + member * ones) / correction1
    change = size_of_step * m / (tl.sqrt(v) / tl.sqrt(correction2) + eps)
    value = tl.load(values + at, mask=moves, other=0.0) - change
    tl.store(values + at, value, mask=moves)
    if FOLLOWED:
        behind = tl.load(follower + at, mask=moves, other=0.0)
        tl.store(follower + at, behind + tau * (value - behind), mask=moves)


def adam_step(
    parameters: Buffer,
    mean: Buffer,
    square: Buffer,
    count: Buffer,
    learning_rate: Buffer,
    alive: Buffer,
    norm: Buffer,
    betas: tuple[float, float],
    eps: float,
    max_norm: float,
    follower: Buffer | None,
    tau: float,
) -> None:
    """The step of `headwise.ops.adam`."""
    members, size = parameters.members, parameters.width
    blocks = -(-size // _BLOCK)
    partial = torch.empty(members * blocks, device=parameters.device)
    values, stride, ticks = parameters.tensor, parameters.tensor.stride(0), count.longs.stride(0)
    sum_squares[(members, blocks)](
        parameters.gradient, partial, count.longs, stride, ticks, size, BLOCK=_BLOCK,
        num_warps=_WARPS,
    )  # fmt: skip
    step[(members, blocks)](
        values, parameters.gradient, mean.tensor, square.tensor,
        values if follower is None else follower.tensor, partial, count.longs,
        learning_rate.tensor, alive.tensor, norm.tensor, stride, ticks, norm.tensor.stride(0),
        size, blocks,
        *betas, *(1.0 - beta for beta in betas), *map(math.log, betas), eps, max_norm, tau,
        FOLLOWED=follower is not None, BLOCK=_BLOCK, BLOCKS=1 << (blocks - 1).bit_length(),
        num_warps=_WARPS,
    )  # fmt: skip
