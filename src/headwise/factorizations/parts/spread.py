"""From network outputs to distributions over Range heads, for every kind of policy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.ranges import RangeDistribution, bounded_log_std, make_range


class Spread(nn.Module):
    """The second parameter of Range distributions: free numbers, or outputs of the network."""

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__()
        self.kind = blueprint.range_kind
        self.bounds = blueprint.log_std_bounds
        device = blueprint.init.keys.device
        num_ranges = blueprint.layout.num_ranges
        self.from_state = blueprint.state_std or self.kind == "beta"
        zero = torch.zeros(1, device=device)
        self._kind = make_range(self.kind, zero, zero)
        self.num_uniforms = self._kind.num_uniforms
        if num_ranges and not self.from_state:
            # Begins at a standard deviation of 1, or as near to it as the bounds allow.
            low, high = self.bounds
            share = min(max(-low / (high - low), 0.01), 0.99)
            first = torch.atanh(torch.tensor(2.0 * share - 1.0, device=device))
            keys = blueprint.init.keys
            self.free = nn.Parameter(first.to(keys.home).repeat(keys.num_members, 1, num_ranges))

    @property
    def outputs_per_range(self) -> int:
        """Network outputs that each Range head takes."""
        return 2 if self.from_state else 1

    def distribution(self, outputs: Tensor, column: int | None = None) -> RangeDistribution:
        """From outputs (..., C, outputs_per_range) of all Range heads, or of the one named."""
        if self.from_state:
            first, free = outputs.unbind(-1)
        else:
            first = outputs.squeeze(-1)
            free = self.free if column is None else self.free[..., column : column + 1]
        if self.kind == "beta":
            return make_range("beta", first, free)
        return make_range(self.kind, first, bounded_log_std(free, *self.bounds).expand_as(first))

    def head_to_unit(self, layout: Layout, head: int, raw: Tensor) -> Tensor:
        """Raw values (...) of one head in the learner's form."""
        return raw if head in layout.choice_of else self._kind.to_unit(raw)

    def to_unit(self, layout: Layout, raw: Tensor) -> Tensor:
        """Raw actions in the learner's form: options as they are, ranges in [-1, 1]."""
        if not layout.num_ranges:
            return raw
        choices = layout.choice_numbers(raw) if layout.num_choices else None
        return layout.columns(choices, self._kind.to_unit(layout.range_columns(raw)))
