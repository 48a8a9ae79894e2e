"""The clipped objective of PPO with its entropy bonus and divergence penalty."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.ops.functions import constant
from headwise.ops.operation import operation

LARGEST = 20.0
"""The largest log-ratio: beyond it a ratio stops growing, and no gradient flows."""


@dataclass(frozen=True)
class Ratios:
    """Which heads have a probability ratio together, and how their entropies count."""

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
    share: Tensor, clip: Tensor, ent_coef: Tensor, kl_coef: Tensor, *, ratios: Ratios,
) -> Tensor:  # fmt: skip
    """Loss, surrogate, entropy and divergence of a minibatch, (P, 1, 1, 4).

    What goes back is the gradient of the first.

    Args:
        log_prob: Log-probabilities of the actions taken, (P, 1, B, H).
        entropy: Entropies of the heads.
        kl: Divergences from the policy that acted, if they are wanted.
        old: The log-probabilities when the actions were taken.
        advantage: The advantage of each ratio, (P, 1, B, 1 or G).
        share: What each row counts in means over the rows where a transition took place,
            (P, 1, B, 1); the divergence is a mean over all rows.
        clip: How far a ratio may move from 1, (P, 1, 1, 1).
        ent_coef: Weight of the entropy.
        kl_coef: Weight of the divergence.
        ratios: Which heads have a ratio together.
    """
    log_ratio = ratios.sums(log_prob - old)
    surrogate = (_clipped_surrogate(log_ratio, advantage, clip) * share).sum((-2, -1))
    weighted = entropy * constant(ratios.entropy_weights, entropy)
    bonus = (weighted.sum(-1, keepdim=True) * share).sum((-2, -1))
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
    log_prob: Tensor, entropy: Tensor, old: Tensor, share: Tensor, clip: Tensor, so_far: Tensor,
    *, ratios: Ratios,
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
    return so_far + (rows * share).sum(-2, keepdim=True)


@operation()
def adapt_coefficient(divergence: Tensor, coef: Tensor, *, target: float) -> Tensor:
    """The weight of a divergence, grown where that is too large and shrunk where it is small."""
    factor = torch.where(divergence < target / 1.5, 1.0 / 1.5, 1.0)
    factor = torch.where(divergence > target, 1.5, factor)
    return (coef * factor).clamp(1e-4, 100.0)
