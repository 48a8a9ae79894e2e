"""The Triton kernels of a clipped Adam step. Imported only where there is a CUDA device.

Work is cut into blocks that each belong to one member, so that a block knows its step size, its
norm and whether it is alive; sums are taken in a fixed order.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def sum_squares(grads, starts, counts, partial, clock, BLOCK: tl.constexpr):
    """The sum of squared gradients of each block; the first counts the step."""
    block = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    grad = tl.load(
        grads + tl.load(starts + block) + lane, mask=lane < tl.load(counts + block), other=0.0
    )
    tl.store(partial + block, tl.sum(grad * grad, axis=0))
    if block == 0:
        tl.store(clock, tl.load(clock) + 1)


@triton.jit(do_not_specialize=["blocks_each"])
def step(
    values, grads, means, squares, followers, starts, counts, members, partial, lr, norm, alive,
    clock, blocks_each, rate, beta1, beta2, rest1, rest2, log_beta1, log_beta2, eps, max_norm,
    FOLLOWED: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """One step of each block; its gradients are then zero, and followers of the living moved."""
    block = tl.program_id(0)
    member = tl.load(members + block)
    part = tl.arange(0, PARTS)
    mine = partial + member * blocks_each + part
    length = tl.sqrt(tl.sum(tl.load(mine, mask=part < blocks_each, other=0.0), axis=0))
    # Every block of a member comes to the same verdict, also if another has written it already.
    living = (tl.load(alive + member) != 0) & (length < float("inf"))
    if block % blocks_each == 0:
        tl.store(norm + member, length)
        tl.store(alive + member, living)
    scale = tl.where((max_norm > 0.0) & (length > max_norm), max_norm / (length + 1e-6), 1.0)
    number = tl.load(clock).to(tl.float32)
    # 1 - beta^number, to the last digit
    correction1 = -libdevice.expm1(number * log_beta1)
    correction2 = -libdevice.expm1(number * log_beta2)
    size, spread = tl.load(lr + member) / correction1, tl.sqrt(correction2)
    start, count = tl.load(starts + block), tl.load(counts + block)
    if (start % 4 == 0) & (count % 4 == 0):
        # Said in a way that the compiler understands: it then loads four numbers at a time.
        start, count = start // 4 * 4, count // 4 * 4
        move(
            values, grads, means, squares, followers, start, count, living, scale, size, spread,
            rate, beta1, beta2, rest1, rest2, eps, FOLLOWED, BLOCK,
        )  # fmt: skip
    else:
        move(
            values, grads, means, squares, followers, start, count, living, scale, size, spread,
            rate, beta1, beta2, rest1, rest2, eps, FOLLOWED, BLOCK,
        )  # fmt: skip


@triton.jit
def move(
    values, grads, means, squares, followers, start, count, living, scale, size, spread,
    rate, beta1, beta2, rest1, rest2, eps, FOLLOWED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Moves the numbers of a block, and whoever follows them, if their member lives."""
    lane = tl.arange(0, BLOCK)
    inside = lane < count
    at = start + lane
    grad = tl.load(grads + at, mask=inside, other=0.0) * scale
    mean = tl.load(means + at, mask=inside, other=0.0)
    square = tl.load(squares + at, mask=inside, other=0.0)
    value = tl.load(values + at, mask=inside, other=0.0)
    mean = beta1 * mean + rest1 * grad
    square = beta2 * square + rest2 * grad * grad
    change = mean / (tl.sqrt(square) / spread + eps)
    moves = inside & living
    value = tl.where(living, value - change * size, value)
    tl.store(values + at, value, mask=moves)
    tl.store(means + at, mean, mask=moves)
    tl.store(squares + at, square, mask=moves)
    tl.store(grads + at, lane * 0.0, mask=inside)
    if FOLLOWED:
        follower = tl.load(followers + at, mask=inside, other=0.0)
        tl.store(followers + at, follower + rate * (value - follower), mask=moves)
