"""Which heads have a probability ratio together, and what advantage that ratio has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headwise.heads.layout import Layout
from headwise.ops import operation
from headwise.ops.policy_loss import RatioGroups

if TYPE_CHECKING:
    from headwise.algorithms.ppo import PPO


def ratios_of(config: PPO, layout: Layout, *, joint: bool) -> RatioGroups:
    """The ratios that the settings ask for; `joint`: whether the factorization's default is one."""
    kind = ("joint" if joint else "per_head") if config.ratio == "auto" else config.ratio
    discrete, continuous = layout.num_discrete, layout.num_continuous
    groups = {
        "joint": [0] * layout.num_heads,
        "per_head": list(range(layout.num_heads)),
        "ranges_joint": [*range(discrete), *[discrete] * continuous],
    }[kind]
    weight = 1.0 / continuous if continuous and config.range_entropy == "mean" else 1.0
    return RatioGroups(tuple(groups), tuple([1.0] * discrete + [weight] * continuous))


@operation(compiled=False)
def group_advantages(advantage: Tensor, *, ratios: RatioGroups, mean: bool) -> Tensor:
    """The advantage of each ratio (P, 1, B, G), from that of each head (P, 1, B, H).

    Of a branching critic they are shares of one credit: together they are their sum. Of critics for
    every head each gives all of it, and together they are their mean.
    """
    result = ratios.sums(advantage)
    if not mean:
        return result
    return result / ratios.sums(torch.ones_like(advantage))
