"""The clipped objective of PPO with its entropy bonus and divergence penalty."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.ops.functions import constant
from headwise.ops.operation import operation

LOSS, SURROGATE, ENTROPY, DIVERGENCE = range(4)
"""The columns of `policy_loss`."""

LARGEST = 20.0
"""The largest log-ratio: beyond it a ratio stops growing, and no gradient flows."""


@dataclass(frozen=True)
class RatioGroups:
    """Which heads have a probability ratio together, and how their entropies count.

    By default every head has a ratio of its own, r_h = pi(a_h | s) / pi_old(a_h | s), clipped by
    itself. Stable-Baselines3 clips one ratio of the whole action, the product of these: that is all
    heads in one group.
    """

    groups: tuple[int, ...]
    """The ratio that each head has a part in, (H,); ratios are numbered from 0 (G)."""
    entropy_weights: tuple[float, ...]
    """What the entropy of each head counts, (H,)."""

    @property
    def count(self) -> int:
        """How many ratios there are (G)."""
        return max(self.groups) + 1

    @property
    def core(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """As the compiled module knows it."""
        return self.groups, self.entropy_weights

    def sums(self, x: Tensor) -> Tensor:
        """Columns of heads (..., H) added up by ratio, (..., G)."""
        heads: list[list[Tensor]] = [[] for _ in range(self.count)]
        for column, group in zip(x.unbind(-1), self.groups, strict=True):
            heads[group].append(column)
        return torch.stack([functools.reduce(torch.add, group) for group in heads], dim=-1)

    def spread(self, x: Tensor) -> Tensor:
        """Columns of ratios (..., G) as those of the heads that have a part in them, (..., H)."""
        return torch.stack([x[..., group] for group in self.groups], dim=-1)


@operation()
def policy_loss(
    log_prob: Tensor, entropy: Tensor, kl: Tensor | None, old: Tensor, advantage: Tensor,
    row_weights: Tensor, clip: Tensor, ent_coef: Tensor, kl_coef: Tensor, *, ratios: RatioGroups,
) -> Tensor:  # fmt: skip
    """Loss, surrogate, entropy and divergence of a minibatch, (P, 1, 1, 4).

    loss = -sum_g E[min(r_g A_g, clip(r_g, 1 - c, 1 + c) A_g)] - ent_coef E[sum_h w_h entropy_h]
           + kl_coef E[KL], with r_g = exp(sum of log_prob - old over the heads of group g).
    What goes back is the gradient of the first.

    Args:
        log_prob: Log-probabilities of the actions taken, (P, 1, B, H).
        entropy: Entropies of the heads.
        kl: Divergences from the policy that acted, if they are wanted.
        old: The log-probabilities when the actions were taken.
        advantage: The advantage of each ratio, (P, 1, B, 1 or G).
        row_weights: What each row counts in sums over rows: 1 / valid rows, 0 where no transition
            took place, (P, 1, B, 1). The divergence is a mean over all rows.
        clip: How far a ratio may move from 1, (P, 1, 1, 1).
        ent_coef: Weight of the entropy.
        kl_coef: Weight of the divergence.
        ratios: Which heads have a ratio together.
    """
    log_ratio = ratios.sums(log_prob - old)
    surrogate = (_clipped_surrogate(log_ratio, advantage, clip) * row_weights).sum((-2, -1))
    weighted = entropy * constant(ratios.entropy_weights, entropy)
    bonus = (weighted.sum(-1, keepdim=True) * row_weights).sum((-2, -1))
    divergence = torch.zeros_like(bonus) if kl is None else kl.sum(-1).mean(-1)
    one = (..., 0, 0)
    loss = kl_coef[one] * divergence - surrogate - ent_coef[one] * bonus
    return torch.stack([loss, surrogate, bonus, divergence], dim=-1).unsqueeze(-2)


def _clipped_surrogate(log_ratio: Tensor, advantage: Tensor, clip: Tensor) -> Tensor:
    """min(r A, clip(r, 1 - clip, 1 + clip) A)."""
    ratio = log_ratio.clamp_max(LARGEST).exp()
    held = torch.maximum(torch.minimum(ratio, 1.0 + clip), 1.0 - clip) * advantage
    free = ratio * advantage
    # Where both are the same the gradient flows, and where the held one is the smaller it stops.
    return torch.where(free <= held, free, held.detach())


@operation()
def movement(
    log_prob: Tensor, entropy: Tensor, old: Tensor, row_weights: Tensor, clip: Tensor,
    so_far: Tensor, *, ratios: RatioGroups,
) -> Tensor:  # fmt: skip
    """What there is so far, and how far the policy has moved, (P, 1, 1, 3 + 3 H).

    These are means over the rows where a transition took place: an estimate of the divergence, how
    many ratios are clipped, the ratio of the joint action; then for each head the divergence, how
    often its ratio is clipped, and the entropy.
    """
    log_ratio = (log_prob - old).detach()
    ratio = ratios.sums(log_ratio).clamp_max(LARGEST).exp()
    outside = ((ratio - 1.0).abs() > clip).to(log_ratio.dtype)
    kl = log_ratio.exp() - 1.0 - log_ratio
    joint = log_ratio.sum(-1, keepdim=True).clamp_max(LARGEST).exp()
    by_row = [kl.sum(-1, keepdim=True), outside.mean(-1, keepdim=True), joint]
    by_head = [kl, ratios.spread(outside), entropy.detach()]
    rows = torch.cat([*by_row, *by_head], dim=-1)
    return so_far + (rows * row_weights).sum(-2, keepdim=True)


@operation()
def adapt_coefficient(divergence: Tensor, coef: Tensor, *, target: float) -> Tensor:
    """The weight of a divergence, grown where that is too large and shrunk where it is small."""
    factor = torch.where(divergence < target / 1.5, 1.0 / 1.5, 1.0)
    factor = torch.where(divergence > target, 1.5, factor)
    return (coef * factor).clamp(1e-4, 100.0)
