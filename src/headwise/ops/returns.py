"""Advantages of a rollout, from rewards and values.

`terminated` and `truncated` are handled apart: a value follows an episode that was cut off, none
follows one that ended, and no trace crosses either.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.ops.operation import operation

TIME = -3


@operation()
def gae(
    reward: Tensor, value: Tensor, next_value: Tensor, terminated: Tensor, truncated: Tensor,
    weight: Tensor | None, gamma: Tensor, trace_decay: Tensor, *, num_envs: int,
) -> Tensor:  # fmt: skip
    """Generalized advantage estimates (P, 1, T * E, G) of a rollout, step after step.

    With weights (P, 1, T * E, H) each residual is shared out among heads before it is summed: the
    importance-weighted estimate of VDN-PPO.

    Args:
        reward: (P, 1, T * E, 1).
        value: V of the observations, (P, 1, T * E, G).
        next_value: V of the true successors.
        terminated: Zeros and ones, (P, 1, T * E, 1).
        truncated: Likewise.
        weight: Each head's share of the credit.
        gamma: The discount, (P, 1, 1, 1).
        trace_decay: Lambda, (P, 1, 1, 1).
        num_envs: Environment copies (E).
    """
    delta = reward + gamma * next_value * (1.0 - terminated) - value
    delta = delta if weight is None else weight * delta
    factor = gamma * trace_decay * (1.0 - terminated) * (1.0 - truncated)
    by_time = [torch.unflatten(x, -2, (-1, num_envs)) for x in (delta, factor)]  # P, 1, T, E, G
    return _discounted_sum(*by_time).flatten(-3, -2)


def _discounted_sum(x: Tensor, factor: Tensor) -> Tensor:
    """y_t = x_t + factor_t y_(t+1) along time, with nothing after the last step.

    Instead of a loop over T, log2(T) rounds of doubling: after round k, y_t holds the sum over the
    next 2^k steps and `reach` the product of their factors.
    """
    y, reach = x, factor.expand_as(x)
    length, span = x.shape[TIME], 1
    while span < length:
        here, ahead, done = (0, length - span), (span, length - span), (length - span, span)
        later = reach.narrow(TIME, *here) * y.narrow(TIME, *ahead)
        product = reach.narrow(TIME, *here) * reach.narrow(TIME, *ahead)
        y = torch.cat([y.narrow(TIME, *here) + later, y.narrow(TIME, *done)], TIME)
        reach = torch.cat([product, torch.zeros_like(reach.narrow(TIME, *done))], TIME)
        span *= 2
    return y


@operation()
def row_shares(valid: Tensor) -> Tensor:
    """Row weights (P, 1, B, 1): 1 / valid rows of a member, 0 where a row is not valid."""
    return valid / valid.sum((-2, -1), keepdim=True).clamp_min(1.0)


@operation()
def standardize(x: Tensor, row_weights: Tensor) -> Tensor:
    """Brought to mean 0 and standard deviation 1 within each member, all columns together.

    Args:
        x: (P, 1, B, G).
        row_weights: What each row counts; one in all, (P, 1, B, 1).
    """
    counts = row_weights / x.shape[-1]
    mean = (x * counts).sum((-2, -1), keepdim=True)
    variance = ((x - mean).square() * counts).sum((-2, -1), keepdim=True)
    return (x - mean) / (variance.sqrt() + torch.finfo(torch.float32).eps)
