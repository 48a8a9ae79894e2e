"""Returns and advantages as pure functions. Time is dimension -3 of (P, T, E, G) tensors.

`terminated` and `truncated` are handled apart: a value follows a cut-off episode, none follows an
ended one, and no trace crosses either.
"""

from __future__ import annotations

import torch
from torch import Tensor

TIME = -3


def discounted_sum(x: Tensor, factor: Tensor) -> Tensor:
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


def td_error(
    reward: Tensor, value: Tensor, next_value: Tensor, terminated: Tensor, gamma: Tensor
) -> Tensor:
    """R + gamma V(s') - V(s), without V(s') where the task has ended; s' is the true successor."""
    return reward + gamma * next_value * (~terminated) - value


def trace_factor(
    terminated: Tensor, truncated: Tensor, gamma: Tensor, trace_decay: Tensor
) -> Tensor:
    """Gamma lambda, and zero where an episode ends for either reason."""
    return gamma * trace_decay * (~(terminated | truncated))


def gae(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    gamma: Tensor,
    trace_decay: Tensor,
    weight: Tensor | None = None,
) -> Tensor:
    """Generalised advantage estimates, (P, T, E, G).

    With weights (P, T, E, H) each residual is shared out among heads before it is summed: the
    importance-weighted GAE of VDN-PPO.
    """
    delta = td_error(reward, value, next_value, terminated, gamma)
    if weight is not None:
        delta = weight * delta
    return discounted_sum(delta, trace_factor(terminated, truncated, gamma, trace_decay))


def td_target(reward: Tensor, next_value: Tensor, terminated: Tensor, discount: Tensor) -> Tensor:
    """R + discount V(s'), without V(s') where the task has ended."""
    return reward + discount * next_value * (~terminated)
