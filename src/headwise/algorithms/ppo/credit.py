"""How much of the credit each head gets: importance to weights, and when weights apply."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.heads.blueprint import Importance
from headwise.ops import HeadTable, operation
from headwise.ops.functions import power
from headwise.ops.mixture import bent, split
from headwise.ops.schedules import ticks

_TINY = 1e-8
"""Keeps zero importance everywhere from being 0 / 0 (an untrained critic has it)."""


@operation(compiled=False)
def head_importance(
    y: Tensor, chosen: Tensor, probs: Tensor, mask: Tensor | None, gradient: Tensor | None,
    *, table: HeadTable, kind: Importance,
) -> Tensor:  # fmt: skip
    """How much each head matters, (P, 1, B, H), not negative but for `signed`.

    `range` is the spread of a head's advantages, `signed` the first-order share of the mixture at
    the action taken (the paper's Equation 8), `grad` the size of it, `range_slope` the spread times
    the mixer's gradient there, and `state` the spread times the gradient at zero, which depends on
    the state alone. The spread is that of the options which may be chosen.

    Args:
        y: Advantages of all options of the critic, (P, 1, B, W).
        chosen: Centered advantages of the options taken, (P, 1, B, H).
        probs: How likely the policy was to choose each option, (P, 1, B, total).
        mask: Which options may be chosen, (P, 1, B, options of discrete heads).
        gradient: How much advantages count in the mixture; None: all count in full.
        table: The heads of the critic.
        kind: Which.
    """
    if kind == "uniform":
        return torch.ones_like(chosen)
    if kind in ("grad", "signed"):
        share = chosen if gradient is None else chosen * gradient
        return share if kind == "signed" else share.abs()
    exists = table.exists
    if mask is not None:
        bins = mask.new_ones(*mask.shape[:-1], table.total - mask.shape[-1])
        exists = table.allowed(torch.cat([mask, bins], dim=-1))
    scores = table.scores(y)
    scores = scores - (table.pad(probs) * table.exists * scores).sum(-1, keepdim=True)
    high = scores.masked_fill(~exists, -torch.inf).amax(-1)
    spread = high - scores.masked_fill(~exists, torch.inf).amin(-1)
    # A head that is not in use may have no option at all.
    spread = spread if mask is None else spread.clamp_min(0.0)
    return spread if gradient is None or kind == "range" else spread * gradient


@operation(compiled=False)
def credit_weights(
    importance: Tensor, clock: Tensor, in_use: Tensor | None, *, span: float, floor: float,
    signed: bool = False,
) -> Tensor:  # fmt: skip
    """Weights (P, 1, B, H) that sum to one: importance to the power alpha, shared out.

    Alpha is 0 in the first update, when every head gets the same, and rises in a line to 1 after
    `span` updates. A floor mixes in the uniform weights, so that no head is starved. Heads that an
    action does not use get nothing.

    Signed importance has no powers: its weights are alpha parts of it divided by its sum, and the
    rest uniform. All are uniform where that sum is zero; where it is small they are large.
    """
    alpha = (ticks(clock) / span).clamp_max(1.0)
    even = torch.ones_like(importance) if in_use is None else in_use
    count = even.sum(-1, keepdim=True)
    if signed:
        used = importance * even
        total = used.sum(-1, keepdim=True)
        none = total == 0.0
        shares = torch.where(none, even / count, used / total.masked_fill(none, 1.0))
        weights = alpha * shares + (1.0 - alpha) * (even / count)
    else:
        powered = power(importance + _TINY, alpha)
        powered = powered if in_use is None else powered * in_use
        weights = powered / powered.sum(-1, keepdim=True)
    return weights if floor == 0.0 else floor * even / count + (1.0 - floor) * weights


@operation(compiled=False)
def expected_mixture(
    y: Tensor, probs: Tensor, weights: Tensor, *, table: HeadTable, relu: bool, soft: bool
) -> Tensor:
    """E[mixture] under the policy, (P, 1, B, 1), to second order: what V lacks of the true value.

    The mixture is convex, so it is not zero on average although each advantage is. With independent
    heads the second-order term is half the sum of curvature times variance.
    """
    scores, chances = table.scores(y), table.pad(probs) * table.exists
    centered = scores - (chances * scores).sum(-1, keepdim=True)
    variance = (chances * centered.square()).sum(-1)
    step = variance.sqrt().clamp_min(1e-3)
    first, second = split(step, weights, soft=soft)
    moved = first * step.unsqueeze(-1)  # one head at a time
    both = (bent(moved, relu=relu) + bent(-moved, relu=relu)) * second.unsqueeze(-2)
    curvature = both.sum(-1) / step.square()
    return (0.5 * curvature * variance).sum(-1, keepdim=True)
