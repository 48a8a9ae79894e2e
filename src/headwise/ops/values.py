"""Values of actions: advantages that are centered, added up or each by itself, and their errors."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.ops.distributions import chosen
from headwise.ops.heads import HeadTable
from headwise.ops.operation import operation


@operation()
def greedy(y: Tensor, mask: Tensor | None, *, table: HeadTable) -> Tensor:
    """Each head's first best option, (P, N, B, D).

    Args:
        y: Numbers of all options, (P, N * stack, B, W).
        mask: Which may be chosen, zeros and ones (P, 1, B, total); all if it is left out.
        table: The discrete heads.
    """
    return table.masked(table.scores(y.detach()), mask).max(-1).indices.to(y.dtype)


@operation()
def advantages(
    y: Tensor, action: Tensor, best: Tensor | None, probs: Tensor | None, in_use: Tensor | None,
    *, table: HeadTable,
) -> Tensor:  # fmt: skip
    """The centered advantages of the options taken, (P, N, B, D).

    Args:
        y: Advantages of all options before they are centered, (P, N * stack, B, W).
        action: The options taken, (P, 1 or N, B, D).
        best: The options whose advantage is to be zero, (P, N, B, D).
        probs: Or probabilities under which its mean is to be zero, (P, 1, B, total).
        in_use: What they are multiplied with, zeros and ones (P, 1, B, D).
        table: The discrete heads.
    """
    scores = table.scores(y)
    result = chosen(scores, action)
    if best is not None:
        result = result - chosen(scores, best)
    if probs is not None:
        result = result - (table.pad(probs) * table.exists * scores).sum(-1)
    return result if in_use is None else result * in_use


@operation(compiled=False)
def even_chances(y: Tensor, mask: Tensor | None, *, table: HeadTable) -> Tensor:
    """The same chance for each option of a head that may be chosen, (P, 1, B, total).

    Args:
        y: Numbers of all options, (P, N * stack, B, W).
        mask: Which may be chosen, zeros and ones (P, 1, B, total); all if it is left out.
        table: The discrete heads.
    """
    may = table.exists.to(y.dtype).expand(y.shape[0], 1, y.shape[2], -1, -1)
    may = may if mask is None else table.allowed(mask).to(y.dtype)
    return table.flatten(may / may.sum(-1, keepdim=True).clamp_min(1.0))


@operation()
def option_values(
    y: Tensor, action: Tensor, best: Tensor | None, in_use: Tensor | None, *, table: HeadTable
) -> Tensor:
    """The plain values of the options taken, (P, N, B, D); a head not in use has its best one's."""
    scores = table.scores(y)
    result = chosen(scores, action)
    if best is None or in_use is None:
        return result
    return torch.where(in_use > 0.0, result, chosen(scores, best))


@operation()
def total(value: Tensor | None, advantage: Tensor, *, adds_up: bool) -> Tensor:
    """V plus the heads' advantages, added up (P, N, B, 1) or each by itself (P, N, B, D).

    Args:
        value: V (P, N, B, 1), or each head's own (P, N * D, B, 1), if there is one.
        advantage: (P, N, B, D).
        adds_up: Whether advantages are added up.
    """
    result = advantage.sum(-1, keepdim=True) if adds_up else advantage
    return result if value is None else by_head(value, advantage.shape[1]) + result


def by_head(value: Tensor, networks: int) -> Tensor:
    """V of all heads (P, N, B, 1) as it is; each head's own (P, N * D, B, 1) as (P, N, B, D)."""
    if value.shape[1] == networks:
        return value
    return torch.unflatten(value.squeeze(-1), 1, (networks, -1)).movedim(-2, -1)


@operation()
def heads_last(value: Tensor) -> Tensor:
    """Each head's own values (P, H, B, 1) as columns, (P, 1, B, H)."""
    return by_head(value, 1)


# --- errors ---------------------------------------------------------------------------------------

LOSS, ERROR, VALUE = range(3)
"""The columns of `value_error`: only the first has a gradient, the others are reported."""


@operation()
def value_error(
    predicted: Tensor, target: Tensor, weight: Tensor, *, coef: float, huber: bool
) -> Tensor:
    """Loss, size of the error and value, sums weighted by row and column, (P, N, 1, 3).

    What goes back is the gradient of the first.

    Args:
        predicted: The values, (P, N, B, G).
        target: What they should have been, (P, 1, B, 1 or G).
        weight: What each error counts, (P, 1, B, 1 or G).
        coef: What the loss is multiplied with.
        huber: Huber's loss, or the square.
    """
    error = predicted - target
    size = error.abs()
    loss = torch.where(size < 1.0, 0.5 * error.square(), size - 0.5) if huber else error.square()
    parts = coef * loss, size.detach(), predicted.detach()
    return torch.cat([(x * weight).sum((-2, -1), keepdim=True) for x in parts], dim=-1)


@operation()
def clipped_value_error(
    predicted: Tensor, target: Tensor, old: Tensor, weight: Tensor, *, coef: float, clip: float
) -> Tensor:
    """`value_error`, or that of values held near the old ones if it is larger over the batch.

    The larger of the two means, as in the paper's package; PPO2 takes the mean of the larger.
    """
    held = old + (predicted - old).clamp(-clip, clip)
    losses = [
        ((x - target).square() * weight).sum((-2, -1), keepdim=True) for x in (predicted, held)
    ]
    parts = (predicted - target).detach().abs(), predicted.detach()
    means = [(x * weight).sum((-2, -1), keepdim=True) for x in parts]
    return torch.cat([coef * torch.maximum(*losses), *means], dim=-1)


@operation()
def in_use(action: Tensor, *, table: HeadTable) -> Tensor:
    """Which heads each action in unit form uses, zeros and ones (P, N, B, H)."""
    return table.in_use(action)


@operation()
def shares_in_use(use: Tensor, *, scale: float, by_head: bool) -> Tensor:
    """What errors of heads count whose mean is over the rows in which heads are in use.

    Args:
        use: Which heads are in use, zeros and ones (P, 1, B, H).
        scale: What the mean is multiplied with.
        by_head: Whether each head has a mean over its own rows, or all have one together.
    """
    count = use.sum(-2 if by_head else (-2, -1), keepdim=True)
    return use * (scale / count.clamp_min(1.0))


# --- targets --------------------------------------------------------------------------------------


@operation()
def td_target(
    reward: Tensor, discount: Tensor, value: Tensor, bonus: Tensor | None, expected: Tensor | None
) -> Tensor:
    """The TD target, y = r + discount (min_n value_n + bonus - expected), (P, 1, B, G).

    Args:
        reward: (P, 1, B, 1 or G).
        discount: What the next value counts; zero where the task has ended, (P, 1, B, 1).
        value: The next value, of which the least of all copies (twins) counts, (P, N, B, G).
        bonus: What is added to it, (P, 1, B, G), if anything.
        expected: What is taken from it, (P, 1, 1 or B, G), if anything.
    """
    next_value = value.amin(1, keepdim=True)
    next_value = next_value if bonus is None else next_value + bonus
    next_value = next_value if expected is None else next_value - expected
    return reward + discount * next_value


@operation()
def discount_of(terminated: Tensor, gamma: Tensor) -> Tensor:
    """What the next value counts, (P, 1, B, 1): nothing where the task has ended."""
    return gamma * (1.0 - terminated)


@operation(compiled=False)
def munchausen(
    reward: Tensor, log_policy: Tensor, use: Tensor | None, *, weight: float, floor: float,
    adds_up: bool,
) -> Tensor:  # fmt: skip
    """The reward and a bonus for being sure of the action taken, (P, 1, B, 1 or D).

    Args:
        reward: (P, 1, B, 1).
        log_policy: Temperatures times log-policies of the options taken, (P, 1, B, D).
        use: Which heads are in use, zeros and ones (P, 1, B, D), if not all always are.
        weight: What the bonus is multiplied with.
        floor: The least that it may be before that.
        adds_up: Whether heads have one bonus together.
    """
    bonus = log_policy if use is None else log_policy * use
    bonus = bonus.sum(-1, keepdim=True) if adds_up else bonus
    return reward + weight * bonus.clamp(floor, 0.0)


@operation()
def actor_loss(value: Tensor, bonus: Tensor | None, weight: Tensor | None) -> Tensor:
    """-E[sum_g weight_g (min_n value_ng + bonus_g)]: minus what an actor gains, (P, 1, 1, 1).

    Args:
        value: Values of what it does, of which the least of all copies counts, (P, N, B, G).
        bonus: What is added to that, (P, 1, B, G).
        weight: What gains count, (P, 1, B, G), if not all alike.
    """
    gain = value.amin(1, keepdim=True)
    gain = gain if bonus is None else gain + bonus
    gain = gain if weight is None else gain * weight
    return -gain.sum((-2, -1), keepdim=True) / value.shape[-2]


@operation()
def row_mean(x: Tensor) -> Tensor:
    """The mean over rows, (P, N, 1, W)."""
    return x.mean(-2, keepdim=True)


@operation()
def multiply(x: Tensor, y: Tensor) -> Tensor:
    """Numbers times numbers, each by itself."""
    return x * y


@operation()
def add(x: Tensor, y: Tensor) -> Tensor:
    """Numbers plus numbers, each by itself."""
    return x + y
