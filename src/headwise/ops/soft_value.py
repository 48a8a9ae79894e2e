"""Maximum-entropy values: of the policy that is a softmax of advantages, and of entropies."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.ops.distributions import Distribution, chosen, pick
from headwise.ops.heads import HeadTable
from headwise.ops.operation import operation
from headwise.ops.values import by_head


def _is_unconditional(table: HeadTable, **_: bool) -> bool:
    return not table.is_conditional


@operation(fits=_is_unconditional)
def soft_value(
    value: Tensor | None, y: Tensor, alpha: Tensor, mask: Tensor | None, in_use: Tensor | None,
    *, table: HeadTable, adds_up: bool, plain: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The value of a state with the entropy to come, under a softmax of each head's advantages.

    It comes with the entropy of each discrete head by the first copy, (P, 1, B, D). Where heads are
    conditional and it is not known which are in use, it comes with how likely each head is by the
    first copy, (P, 1, B, H). The entropy is weighted as the heads count in the value.

    Args:
        value: V (P, N, B, 1), or each head's own (P, N * D, B, 1), or nothing.
        y: Advantages of all options before they are centered, (P, N * stack, B, W).
        alpha: Temperatures of the heads, (P, 1, 1, D).
        mask: Which options may be chosen, (P, 1, B, total).
        in_use: Which heads are in use, (P, 1, B, D), where that is known. Otherwise heads count as
            much as they are likely to be.
        table: The discrete heads, and behind them continuous ones that they put in use.
        adds_up: Whether heads are added up to one value (P, N, B, 1), or each has one (P, N, B, D).
        plain: Whether `y` are values, and not advantages: then the best ones count as well.
    """
    log_policy, best = _log_policy(table, y, None, alpha, mask)
    # In closed form: E[A_h] + alpha H_h = alpha log sum exp(A_h / alpha), where the best A_h is 0,
    # so that its log-probability is minus the sum.
    gains, entropy = -alpha * log_policy.max(-1).values, _entropy(log_policy)
    activity = []
    if in_use is not None:
        gains, entropy = gains * in_use, entropy * in_use
    elif table.is_conditional:
        likely = _activity(table, log_policy)
        of_discrete = table.split(likely)[0]
        gains, entropy = gains * of_discrete, entropy * of_discrete
        activity.append(likely[:, :1])
    gains = gains + best if plain else gains
    gains = gains.sum(-1, keepdim=True) if adds_up else gains
    soft = gains if value is None else by_head(value, gains.shape[1]) + gains
    return soft, entropy[:, :1], *activity


@operation(fits=_is_unconditional)
def boltzmann(
    y: Tensor, gradient: Tensor | None, alpha: Tensor, uniform: Tensor, mask: Tensor | None,
    *, table: HeadTable,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Options drawn from a softmax of each head's advantages, and entropies, (P, N, B, D).

    Where heads are conditional, how likely each is to be in use comes with them, (P, N, B, H), and
    entropies are weighted with it. No gradient flows.

    Args:
        y: Advantages of all options before they are centered, (P, N * stack, B, W).
        gradient: What a head's advantages count, (P, N, B, D), if not all alike.
        alpha: Temperatures of the heads, (P, 1, 1, D).
        uniform: Uniform numbers, (P, 1, B, D).
        mask: Which options may be chosen, (P, 1, B, total).
        table: The discrete heads, and behind them continuous ones that they put in use.
    """
    log_policy, _ = _log_policy(table, y.detach(), gradient, alpha, mask)
    drawn, entropy = pick(log_policy, uniform.expand(log_policy.shape[:-1])), _entropy(log_policy)
    if not table.is_conditional:
        return drawn, entropy
    likely = _activity(table, log_policy)
    return drawn, entropy * table.split(likely)[0], likely


@operation(compiled=False)
def scaled_log_policy(
    y: Tensor, action: Tensor, alpha: Tensor, mask: Tensor | None, *, table: HeadTable
) -> Tensor:
    """Temperatures times the log-policies of the options taken, (P, N, B, D): Munchausen's."""
    log_policy, _ = _log_policy(table, y.detach(), None, alpha, mask)
    return alpha * chosen(log_policy, action)


@operation(compiled=False)
def chance_of_use(
    y: Tensor, alpha: Tensor, mask: Tensor | None, action: Tensor, *, table: HeadTable
) -> Tensor:
    """How likely each head is to be in use, (P, 1, B, H), under a softmax of advantages.

    Conditions on real numbers are met or not by those of the action.

    Args:
        y: Advantages of all options before they are centered, (P, stack, B, W).
        alpha: Temperatures of the discrete heads, (P, 1, 1, D).
        mask: Which options may be chosen, (P, 1, B, total).
        action: Actions in unit form, (P, 1, B, H).
        table: The heads.
    """
    heads = Distribution.of_options(table, _log_policy(table, y.detach(), None, alpha, mask)[0])
    numbers = action.detach()
    columns = [torch.ones_like(numbers[..., 0])] * table.num_heads
    for head in table.order:
        condition = table.conditions[head]
        if condition is None:
            continue
        if condition.head in table.discrete:
            met = heads.chance(*condition)
        else:
            value = numbers[..., condition.head]
            met = ((condition.low <= value) & (value < condition.high)).to(value.dtype)
        columns[head] = columns[condition.head] * met
    return torch.stack(columns, dim=-1)


def _log_policy(
    table: HeadTable, y: Tensor, gradient: Tensor | None, alpha: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Log-policies (P, N, B, D, K) of options, and their best scores (P, N, B, D).

    Options that may not be chosen are masked again after the temperature: a mixture that is flat,
    or a temperature close to zero, would make too little or too much of their advantages.
    """
    scores = table.masked(table.scores(y), mask)
    best = scores.max(-1).values
    centered = scores - best.unsqueeze(-1)
    if gradient is not None:
        centered = centered * gradient.unsqueeze(-1)
    return table.masked(centered / alpha.unsqueeze(-1), mask).log_softmax(-1), best


def _entropy(log_policy: Tensor) -> Tensor:
    return -(log_policy.exp() * log_policy).sum(-1)


def _activity(table: HeadTable, log_policy: Tensor) -> Tensor:
    """How likely each head is to be in use by its conditions on options, (P, N, B, H).

    Conditions on real numbers are taken as met.
    """
    activity = Distribution.of_options(table, log_policy).activity()
    assert activity is not None
    return activity


# --- entropies and temperatures -------------------------------------------------------------------


@operation()
def entropy_bonus(
    entropy: Tensor, alpha: Tensor, weight: Tensor | None, *, adds_up: bool
) -> Tensor:
    """Temperatures times entropies, added up (P, N, B, 1) or each by itself (P, N, B, H).

    Args:
        entropy: (P, N, B, H).
        alpha: Temperatures, (P, 1, 1, H).
        weight: What each counts, (P, 1, 1 or B, H), if not all alike.
        adds_up: Whether heads are added up.
    """
    bonus = alpha * entropy if weight is None else alpha * entropy * weight
    return bonus.sum(-1, keepdim=True) if adds_up else bonus


@operation()
def target_entropy(fraction: Tensor, mask: Tensor | None, *, table: HeadTable) -> Tensor:
    """The entropy that each head should have, (P, 1, 1 or B, H).

    A fraction (P, 1, 1, 1) of the largest there is, given which options may be chosen (P, 1, B,
    total); -1 for a continuous head.
    """
    most = table.log_sizes
    if mask is not None:
        # A head that is not in use may have no option at all.
        of_discrete = table.allowed(mask).sum(-1).clamp_min(1).to(mask.dtype).log()
        none = torch.zeros(*of_discrete.shape[:-1], len(table.continuous), device=mask.device)
        most = torch.cat([of_discrete, none], dim=-1)
    return fraction * most - table.is_continuous


@operation()
def entropy_surplus(
    entropy: Tensor, target: Tensor, in_use: Tensor | None, *, groups: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """How much more entropy there is than there should be: the gradient of log-temperatures.

    It is added up by temperature, (P, 1, 1, temperatures), and comes with the mean of each head's
    entropy and of what that should be, (P, 1, 1, H).

    Args:
        entropy: (P, 1, B, H).
        target: What it should be, (P, 1, 1 or B, H).
        in_use: How likely each head is to be in use, (P, 1, B, H): it has as much less to reach.
        groups: The temperature that each head has a part in.
    """
    mean = entropy.detach().mean(-2, keepdim=True)
    aim = (target if in_use is None else target * in_use).mean(-2, keepdim=True)
    columns: list[list[Tensor]] = [[] for _ in range(max(groups) + 1)]
    for column, group in zip((mean - aim).unbind(-1), groups, strict=True):
        columns[group].append(column)
    return torch.stack([torch.stack(own).sum(0) for own in columns], dim=-1), mean, aim


@operation()
def temperatures(log_alpha: Tensor, *, groups: tuple[int, ...]) -> Tensor:
    """The temperature of each head, (P, 1, 1, H), from logarithms (P, 1, 1, temperatures)."""
    alpha = log_alpha.detach().exp()
    return torch.stack([alpha[..., group] for group in groups], dim=-1)
