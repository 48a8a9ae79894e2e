"""The policy's side of the loss of PPO: clipped surrogate, entropy, and what keeps it near."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from headwise.algorithms.advantages import standardised
from headwise.algorithms.losses.columns_loss import ColumnsLoss, columns_loss
from headwise.algorithms.losses.options_loss import (
    fits_options_loss,
    flat_options_loss,
    options_loss,
)
from headwise.algorithms.losses.surrogate import clipped_surrogate
from headwise.factorizations.base import Judged, Policy, PolicyOverOptions
from headwise.factorizations.parts.heads import Heads
from headwise.factorizations.parts.layout import Layout
from headwise.population import along, member_mean, member_sum

if TYPE_CHECKING:
    from headwise.algorithms.ppo import PPO


class PolicyTerms(NamedTuple):
    """What a minibatch says of the policy; means over its rows are (P,), summed over heads."""

    loss: Tensor
    surrogate: Tensor
    entropy: Tensor
    divergence: Tensor | None
    """From the policy that acted, where it is penalised."""
    judged: Judged
    ratio: Tensor
    """Of each column, (P, B, G)."""


class PolicyLoss:
    """Minus the clipped surrogate and the weighted entropy, plus penalties.

    Penalties hold the policy in all states seen, also in those where no transition took place.

    Args:
        config: The settings.
        actor: The policy.
        layout: Its heads.
        joint: Whether one ratio stands for all heads unless the settings say otherwise.
        branching: Whether the advantages of heads are shares of one credit, as of a branching
            critic: together they are their sum. Of critics for every head, each gives all of it,
            and together they are their mean.
        clip: How far a ratio may move, (P,).
        entropy_coef: The weight of the entropy, (P,).
    """

    def __init__(
        self,
        config: PPO,
        actor: Policy,
        layout: Layout,
        *,
        joint: bool,
        branching: bool,
        clip: Tensor,
        entropy_coef: Tensor,
    ) -> None:
        self.config = config
        self.actor = actor
        self.layout = layout
        self.ratio = ("joint" if joint else "per_head") if config.ratio == "auto" else config.ratio
        self.branching = branching
        self.clip = clip
        self.entropy_coef = entropy_coef
        self.kl_coef = torch.full_like(clip, config.kl_coef)
        """The weight of the divergence, (P,), which adapts."""
        self.over_options: PolicyOverOptions | None = None
        """The policy, where one call of the compiled module, or one kernel, does it all."""
        if self.ratio != "joint" and fits_options_loss(layout):
            self.over_options = actor if isinstance(actor, PolicyOverOptions) else None
        self._groups_ranges = self.ratio == "ranges_joint" and layout.num_ranges > 1
        # The ratio that each head has a part in, (H,), if Ranges have one together.
        self._ratio_of = torch.where(
            layout.is_choice, layout.is_choice.cumsum(-1) - 1, layout.num_choices
        )
        self._entropy_weight: Tensor | None = None  # of each column, where not all count alike
        if config.range_entropy == "mean" and layout.num_ranges > 1:
            self._entropy_weight = torch.where(layout.is_choice, 1.0, 1.0 / layout.num_ranges)

    def __call__(self, part: dict[str, Tensor], share: Tensor) -> PolicyTerms:
        """The terms of a minibatch, of whose rows each counts its share, (P, B, 1)."""
        by = self.by_tensors if self.over_options is None else self.by_module
        terms = by(part, share)
        if terms.divergence is not None:
            self._adapt(terms.divergence)
        return terms

    def by_tensors(self, part: dict[str, Tensor], share: Tensor) -> PolicyTerms:
        """From what the policy says of the actions, for every policy on every device."""
        judged = self.actor.judge(part["obs"], part["raw"], part.get("legal"))
        on_gpu = judged.log_prob.device.type == "cuda" and not self._groups_ranges
        found = (self.by_kernel if on_gpu else self.by_operations)(judged, part, share)
        loss, surrogate, entropy, ratio = found
        divergence = None
        if self.config.kl_coef:
            old = {n.removeprefix("old_"): x for n, x in part.items() if n.startswith("old_")}
            by_head = judged.heads.rebuilt(old).kl(judged.heads, judged.given)
            divergence = member_mean(by_head.sum(-1, keepdim=True))
            loss = loss + self.kl_coef.clone() * divergence  # the weight changes before autograd
        if self.config.mean_penalty and judged.heads.ranges is not None:
            mean = judged.heads.ranges.tensors()[0]
            far = torch.where(mean.abs() > 4.0, mean.square(), 0.0)
            loss = loss + self.config.mean_penalty * member_mean(far)
        return PolicyTerms(loss, surrogate, entropy, divergence, judged, ratio)

    def by_operations(self, judged: Judged, part: dict[str, Tensor], share: Tensor) -> ColumnsLoss:
        """Surrogate and entropy in tensor operations."""
        columns, ratio = self.surrogate(judged, part, part["advantage"])
        surrogate = member_sum(columns * share)
        entropy = member_sum(self._total_entropy(judged.entropy) * share)
        return ColumnsLoss(-surrogate - self.entropy_coef * entropy, surrogate, entropy, ratio)

    def by_kernel(self, judged: Judged, part: dict[str, Tensor], share: Tensor) -> ColumnsLoss:
        """The loss as one kernel, unless some columns share a ratio and others do not."""
        advantage, joint = part["advantage"], self.ratio == "joint"
        if joint:
            advantage = self._together(advantage)
        if self.config.normalise == "minibatch":
            advantage = standardised(advantage, part["valid"])
        return columns_loss(
            judged.log_prob,
            judged.entropy,
            part["log_prob"],
            advantage,
            share,
            self.clip,
            self.entropy_coef,
            joint=joint,
            weight=self._entropy_weight,
        )

    def by_module(self, part: dict[str, Tensor], share: Tensor) -> PolicyTerms:
        """All of it by the compiled module or as one kernel, for a policy over options."""
        actor = self.over_options
        assert actor is not None
        advantage = part["advantage"]
        if self.config.normalise == "minibatch":
            advantage = standardised(advantage, part["valid"])
        old = part["old_log_probs"] if self.config.kl_coef else None
        obs, legal = part["obs"], part.get("legal")
        rows = (part["raw"], part["log_prob"], advantage, share, old)
        weights = (self.clip, self.entropy_coef, self.kl_coef)
        if obs.device.type == "cuda":
            flat = actor.flat_logits(obs)
            found = flat_options_loss(self.layout, flat, legal, *rows, weights)
        else:
            found = options_loss(actor.logits(obs, legal), *rows, torch.stack(weights))
        judged = Judged(found.log_prob, Heads(self.layout, found.log_probs, None))
        divergence = None if old is None else found.divergence
        return PolicyTerms(
            found.loss, found.surrogate, found.entropy, divergence, judged, found.ratio
        )

    def surrogate(
        self, judged: Judged, part: dict[str, Tensor], advantage: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The clipped objective of each column of ratios, (P, B, G), and the ratios."""
        log_ratio = judged.log_prob - part["log_prob"]
        if self.ratio == "joint":
            log_ratio = log_ratio.sum(-1, keepdim=True)
            advantage = self._together(advantage)
        elif self._groups_ranges:
            choices, ranges = self.layout.choices, self.layout.ranges
            together = log_ratio.index_select(-1, ranges).sum(-1, keepdim=True)
            log_ratio = torch.cat([log_ratio.index_select(-1, choices), together], dim=-1)
            if advantage.shape[-1] == self.layout.num_heads:  # one for each head
                of_ranges = self._together(advantage.index_select(-1, ranges))
                advantage = torch.cat([advantage.index_select(-1, choices), of_ranges], dim=-1)
        if self.config.normalise == "minibatch":
            advantage = standardised(advantage, part["valid"])
        clip = along(self.clip, log_ratio)
        return clipped_surrogate(log_ratio, advantage, 1.0 - clip, 1.0 + clip)

    def by_head(self, of_ratios: Tensor, *, shared_out: bool = False) -> Tensor:
        """Numbers of each column of ratios (..., G) as numbers of each head, (..., H).

        Ranges that have one ratio together all have its number, or an equal share of it. One ratio
        of all heads stays one column.
        """
        if not self._groups_ranges:
            return of_ratios
        each = of_ratios.index_select(-1, self._ratio_of)
        if not shared_out:
            return each
        return torch.where(self.layout.is_choice, each, each / self.layout.num_ranges)

    def _together(self, advantage: Tensor) -> Tensor:
        """The advantage (..., 1) of heads that have one ratio, from that of each."""
        if advantage.shape[-1] == 1:
            return advantage
        if self.branching:
            return advantage.sum(-1, keepdim=True)
        return advantage.mean(-1, keepdim=True)

    def _total_entropy(self, entropy: Tensor) -> Tensor:
        """The heads' entropies (P, B, G) as one number for each row, (P, B, 1)."""
        if self.config.range_entropy == "sum" or self.layout.num_ranges < 2:
            return entropy.sum(-1, keepdim=True)
        ranges = entropy.index_select(-1, self.layout.ranges).mean(-1, keepdim=True)
        return entropy.index_select(-1, self.layout.choices).sum(-1, keepdim=True) + ranges

    @torch.no_grad()
    def _adapt(self, divergence: Tensor) -> None:
        """The weight of the divergence grows while that is too large, and shrinks again."""
        target = self.config.kl_target
        factor = torch.where(divergence < target / 1.5, 1 / 1.5, 1.0)
        factor = factor.masked_fill(divergence > target, 1.5)
        self.kl_coef.mul_(factor).clamp_(1e-4, 100.0)
