"""Distributions over heads whose options depend on each other as a tree: each given its parent."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from headwise.ops.distributions import Distribution, pick
from headwise.ops.heads import NEVER, HeadTable


class LinkedDistribution(Distribution):
    """The distribution of an action whose heads are drawn after those that limit them.

    A head has the same logits whatever others are, of which only the legal ones count.
    """

    def __init__(
        self, table: HeadTable, y: Tensor, free: Tensor | None = None, mask: Tensor | None = None
    ) -> None:
        super().__init__(table, y, free, mask)
        self._mask = mask

    @cached_property
    def _given(self) -> list[Tensor]:
        """Log-probabilities of each head by its parent's options, (P, N, B, rows, options)."""
        assert self.table.links is not None
        assert self.log_probs is not None
        found = []
        for head, size in enumerate(self.table.sizes):
            own = self.log_probs[..., head, None, :size]
            rows = self.table.links.rows_of(head, self._mask)
            found.append(own.masked_fill(~rows, NEVER).log_softmax(-1))
        return found

    @cached_property
    def _use(self) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """By head: how likely it is to be in use; that by row; and with each of its options."""
        table, links = self.table, self.table.links
        assert links is not None
        one = torch.ones_like(self._given[0][..., 0, 0])
        use, by_row, with_option = ([one] * table.num_heads for _ in range(3))
        for head in links.order:
            condition, parent = table.conditions[head], links.parent.get(head)
            if parent is not None:
                rows = with_option[parent]
                gate = links.gate(head, rows)
                if gate is not None and condition is not None and condition.head == parent:
                    rows = rows * gate
                use[head] = rows.sum(-1)
            else:
                if condition is not None and condition.head in table.discrete:
                    gate = links.gate(head, one)
                    assert gate is not None
                    use[head] = (with_option[condition.head] * gate).sum(-1)
                elif condition is not None:
                    use[head] = use[condition.head] * self.chance(*condition)
                rows = use[head].unsqueeze(-1)
            by_row[head] = rows
            if head in table.discrete:
                with_option[head] = (rows.unsqueeze(-1) * self._given[head].exp()).sum(-2)
        return use, by_row, with_option

    def _row(self, head: int, options: Tensor) -> Tensor:
        """Log-probabilities of a head's options after those of the heads before, (P, N, B, K)."""
        assert self.table.links is not None
        parent, own = self.table.links.parent[head], self._given[head]
        if parent is None or own.shape[-2] == 1:
            return own[..., 0, :]
        row = options[..., parent].long().expand(own.shape[:-2])[..., None, None]
        return own.gather(-2, row.expand(*row.shape[:-1], own.shape[-1])).squeeze(-2)

    def _options(self, uniform: Tensor) -> Tensor:
        assert self.table.links is not None
        drawn = torch.zeros_like(self._given[0][..., 0, :1]).expand(
            *self._given[0].shape[:-2], len(self.table.discrete)
        ).contiguous()  # fmt: skip
        columns = list(drawn.unbind(-1))
        for head in (h for h in self.table.links.order if h in self.table.discrete):
            own = self._row(head, torch.stack(columns, -1))
            columns[head] = pick(own.unsqueeze(-2), uniform[..., head : head + 1])[..., 0]
        return torch.stack(columns, -1)

    def _likeliest(self) -> Tensor:
        """The most likely joint options."""
        assert self.table.links is not None
        return self.table.links.best(self._given)

    def option_probs(self) -> Tensor:
        """The probabilities of all options, (P, N, B, D, K), of each head where it is in use."""
        use, _, with_option = self._use
        columns = []
        for head, size in enumerate(self.table.sizes):
            own = with_option[head] / use[head].unsqueeze(-1).clamp_min(1e-30)
            columns.append(torch.nn.functional.pad(own, (0, self.table.widest - size)))
        return torch.stack(columns, -2)

    def log_prob(self, raw: Tensor) -> Tensor:
        """The log-probability or log-density of each head, given those before it."""
        options, numbers = self.table.split(raw)
        discrete = [
            self._row(h, options).gather(-1, options[..., h : h + 1].long()).squeeze(-1)
            for h in self.table.discrete
        ]
        continuous = self.log_density(numbers) if self.table.continuous else None
        return self._used(self.table.join(torch.stack(discrete, -1), continuous), raw)

    def entropy(self, raw: Tensor | None = None) -> Tensor:
        """The entropy of each head on average over those before it, weighted with its use."""
        columns = [-(own.exp() * own).sum(-1) for own in self._given]
        return self._mean(columns, self._own_entropy() if self.table.continuous else None)

    def kl(self, other: Distribution, raw: Tensor | None = None) -> Tensor:
        """The divergence of another distribution from this one, on average over heads before."""
        assert isinstance(other, LinkedDistribution)
        pairs = zip(self._given, other._given, strict=True)
        columns = [(own.exp() * (own - new)).sum(-1) for own, new in pairs]
        return self._mean(columns, self._own_kl(other) if self.table.continuous else None)

    def activity(self) -> Tensor | None:
        """How likely each head is to be in use; None where all always are."""
        return torch.stack(self._use[0], -1) if self.table.is_conditional else None

    def _mean(self, columns: list[Tensor], continuous: Tensor | None) -> Tensor:
        """Numbers of heads by row on average, and those of continuous heads, weighted with use."""
        use, by_row, _ = self._use
        found = [(by_row[h] * own).sum(-1) for h, own in enumerate(columns)]
        if continuous is not None:
            found += [use[h] * continuous[..., c] for c, h in enumerate(self.table.continuous)]
        return torch.stack(found, -1)


def distribution_of(
    table: HeadTable, y: Tensor, free: Tensor | None, mask: Tensor | None
) -> Distribution:
    """The distribution of an action, from a network's outputs."""
    kind = Distribution if table.links is None else LinkedDistribution
    return kind(table, y, free, mask)


def distribution_kept(table: HeadTable, x: Tensor, mask: Tensor | None) -> Distribution:
    """The distribution that `parameters` are of."""
    if table.links is None:
        return Distribution.kept(table, x)
    made = LinkedDistribution.kept(table, x)
    assert isinstance(made, LinkedDistribution)
    made._mask = mask
    return made
