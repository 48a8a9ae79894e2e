"""Adam, with clipping, the quarantine of members that diverged, and a network that follows."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.ops.buffers import Buffer
from headwise.ops.core import core, triton
from headwise.ops.operation import Given, emit


def adam_step(
    parameters: Buffer,
    mean: Buffer,
    square: Buffer,
    count: Buffer,
    learning_rate: Buffer,
    alive: Buffer,
    norm: Buffer,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    max_norm: float = 0.0,
    follower: Given = None,
    tau: float = 0.0,
) -> None:
    """A step along the gradients; nothing crosses members.

    A member whose gradient is not finite has diverged: from then on it and what follows it are left
    as they are, and the others never notice.

    Args:
        parameters: (P, 1, 1, size), with their gradients.
        mean: The running mean of gradients.
        square: The running mean of their squares.
        count: Steps so far, the bits of an int64 (P, 1, 1, 2).
        learning_rate: (P, 1, 1, 1).
        alive: Ones; zero where a member has diverged, (P, 1, 1, 1).
        norm: Is set to the length of each member's gradient, (P, 1, 1, 1).
        betas: Decay of the running mean and square.
        eps: Keeps the quotient finite.
        max_norm: The maximum gradient norm; 0 does not clip.
        follower: Other parameters that move a part of the way to the new ones.
        tau: How large a part.
    """
    if parameters.is_compiled:
        core.adam_step(
            parameters.core, mean.core, square.core, count.core, learning_rate.core, alive.core,
            norm.core, *betas, eps, max_norm, None if follower is None else follower.core, tau,
        )  # fmt: skip
        return

    def define() -> None:
        if parameters.device.type == "cuda":
            triton("adam").adam_step(
                parameters, mean, square, count, learning_rate, alive, norm, betas, eps, max_norm,
                follower, tau,
            )  # fmt: skip
            return
        count.longs.add_(1)
        followed = None if follower is None else follower.tensor
        definition(
            parameters.tensor, parameters.gradient, mean.tensor, square.tensor, count.longs,
            learning_rate.tensor, alive.tensor, norm.tensor, betas, eps, max_norm, followed, tau,
        )  # fmt: skip

    emit(define)


@torch.no_grad()
def definition(
    values: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    count: Tensor,
    learning_rate: Tensor,
    alive: Tensor,
    norm: Tensor,
    betas: tuple[float, float],
    eps: float,
    max_norm: float,
    follower: Tensor | None,
    tau: float,
) -> None:
    """The step in tensor operations, with the count already advanced."""
    beta1, beta2 = betas
    norm.copy_(torch.linalg.vector_norm(gradient, dim=-1, keepdim=True))
    alive.mul_(torch.isfinite(norm))
    if max_norm:
        gradient = gradient * (max_norm / (norm + 1e-6)).clamp_max(1.0)
    goes_on = alive > 0.0
    mean.copy_(torch.where(goes_on, mean.lerp(gradient, 1.0 - beta1), mean))
    squared = square * beta2 + gradient.square() * (1.0 - beta2)
    square.copy_(torch.where(goes_on, squared, square))
    steps = count.to(values.dtype)
    # 1 - beta ** steps, which in float32 would lose digits of a small difference.
    correction1, correction2 = (-torch.expm1(steps * math.log(beta)) for beta in betas)
    change = mean / (square.sqrt() / correction2.sqrt() + eps) * (learning_rate / correction1)
    values.copy_(torch.where(goes_on, values - change, values))
    if follower is not None:
        follower.copy_(torch.where(goes_on, follower.lerp(values, tau), follower))
