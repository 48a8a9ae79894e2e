"""What policies say of actions, in float64 by the textbook's distributions."""

from __future__ import annotations

import torch
from built import Part, starts
from oracle import embedded, in_use
from torch import Tensor
from torch.distributions import Beta, Categorical, Normal, kl_divergence
from torch.nn.functional import softplus

from headwise.factorizations.chain import ChainPolicy

NOWHERE = -1e30


class Said:
    """The distribution of each head, (P, B), given the earlier heads of an action.

    Args:
        part: The policy.
        leaf: Its parameters.
        x: Observations.
        unit: Actions in unit form, which matter to `ar`.
        mask: Which options may be chosen.
    """

    def __init__(
        self, part: Part, leaf: Tensor, x: Tensor, unit: Tensor, mask: Tensor | None = None
    ) -> None:
        it, layout, nets = part.it, part.layout, part.networks(leaf)
        self.layout, self.kind = layout, it.table.kind
        self.depends = isinstance(it, ChainPolicy)
        self.used = in_use(part, unit)
        state = x.double().unsqueeze(1)
        if self.depends:
            prefix = embedded(part, unit.double(), it.graph.order, self.used).unsqueeze(1)
            y = nets[-1](state, prefix)
        else:
            y = nets[-1](state)
        free = nets[0]()[:, 0] if len(nets) == 2 else None
        per, numbers = (1 if free is not None else 2), layout.num_continuous
        apart = y.shape[1] > 1 or layout.num_heads == 1
        self.heads: list[Categorical | Normal | Beta] = []
        for head, n in enumerate(layout.options):
            if n:
                start = starts(layout.sizes)[head]
                first = 0 if apart else per * numbers + start
                logits = y[:, head if apart else 0, :, first : first + n]
                if mask is not None:
                    allowed = mask[..., start : start + n] > 0.0
                    logits = logits.masked_fill(~allowed, NOWHERE)
                self.heads.append(Categorical(logits=logits))
                continue
            c = head - layout.num_discrete
            first = 0 if apart else per * c
            own = y[:, head if apart else 0, :, first : first + per]
            second = own[..., 1] if free is None else free[..., c]
            if self.kind == "beta":
                self.heads.append(Beta(1.0 + softplus(own[..., 0]), 1.0 + softplus(second)))
            else:
                low, high = part.plan.log_std
                log_std = (low + high) / 2.0 + (high - low) / 2.0 * torch.tanh(second)
                self.heads.append(Normal(own[..., 0], log_std.exp().expand_as(own[..., 0])))

    def log_prob(self, raw: Tensor) -> Tensor:
        """Of each head, (P, B, H); the density is that of the unit value."""
        columns = []
        for head, value in zip(self.heads, raw.double().unbind(-1), strict=True):
            own = head.log_prob(value)
            if isinstance(head, Normal) and self.kind == "squashed":
                own = own - torch.log1p(-torch.tanh(value).square())
            columns.append(own - 0.6931471805599453 if isinstance(head, Beta) else own)
        return torch.stack(columns, -1) * self.used

    def entropy(self) -> Tensor:
        """Of each head, (P, B, H), weighted with how likely it is to be in use."""
        columns = []
        for head in self.heads:
            if isinstance(head, Categorical):
                probs = head.probs
                columns.append(-(probs * probs.clamp_min(1e-300).log()).sum(-1))
            else:
                beta = isinstance(head, Beta)
                columns.append(head.entropy() + (0.6931471805599453 if beta else 0.0))
        return torch.stack(columns, -1) * self.weight()

    def kl_to(self, other: Said) -> Tensor:
        """The divergence of another policy from this one, (P, B, H), weighted likewise."""
        columns = []
        for mine, theirs in zip(self.heads, other.heads, strict=True):
            if isinstance(mine, Categorical):
                columns.append((mine.probs * (mine.logits - theirs.logits)).sum(-1))
            else:
                columns.append(kl_divergence(mine, theirs))
        return torch.stack(columns, -1) * self.weight()

    def weight(self) -> Tensor:
        """How likely heads are to be in use; whether they are where later heads know."""
        if self.depends:
            return self.used
        layout, found = self.layout, {}

        def of(head: int) -> Tensor:
            if head not in found:
                condition = layout.conditions[head]
                found[head] = torch.ones_like(self.used[..., 0], dtype=torch.float64)
                if condition is not None:
                    found[head] = of(condition.head) * self._chance(*condition)
            return found[head]

        return torch.stack([of(head) for head in range(layout.num_heads)], -1)

    def _chance(self, head: int, low: float, high: float) -> Tensor:
        own = self.heads[head]
        if isinstance(own, Categorical):
            options = torch.arange(own.probs.shape[-1])
            return own.probs[..., (options >= low) & (options < high)].sum(-1)

        def below(edge: float) -> Tensor:
            if abs(edge) >= 1.0:
                return torch.full_like(self.used[..., 0], float(edge > 0.0), dtype=torch.float64)
            at = torch.tensor(edge, dtype=torch.float64)
            return own.cdf(torch.atanh(at) if self.kind == "squashed" else at)

        return below(high) - below(low)
