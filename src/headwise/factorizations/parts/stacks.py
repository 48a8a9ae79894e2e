"""One network for each head, stacked: outputs (P, H, B, W) as the heads' logits and ranges."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.parts.heads import Heads, pick_options
from headwise.factorizations.parts.layout import NEVER
from headwise.factorizations.parts.ranges import RangeDistribution
from headwise.factorizations.parts.spread import Spread
from headwise.nets import MLP
from headwise.population import Linear


def for_each_head(x: Tensor, num_heads: int) -> Tensor:
    """Inputs (..., B, F) for H networks, (..., H, B, F), without a copy."""
    return x.unsqueeze(-3).expand(*x.shape[:-2], num_heads, *x.shape[-2:])


class PolicyStack(nn.Module):
    """H policy networks, padded to equal outputs: column k is option k, or a Range's parameter."""

    def __init__(self, blueprint: Blueprint, in_features: int) -> None:
        super().__init__()
        layout = blueprint.layout
        self.layout = layout
        copies = (layout.num_heads,)
        self.encoder = MLP(
            blueprint.init, in_features, blueprint.hidden, blueprint.activation, copies=copies
        )
        self.spread = Spread(blueprint)
        self.num_uniforms = layout.num_choices + layout.num_ranges * self.spread.num_uniforms
        per_range = self.spread.outputs_per_range if layout.num_ranges else 0
        self.output = Linear(
            blueprint.init,
            self.encoder.out_features,
            max(layout.max_options, per_range),
            copies=copies,
            gain=blueprint.policy_gain,
        )

    def outputs(self, x: Tensor) -> Tensor:
        """What every network says of its inputs (..., H, B, F), (..., H, B, W)."""
        outputs: Tensor = self.encoder(x, self.output)
        return outputs

    def outputs_of(self, head: int, x: Tensor) -> Tensor:
        """What one head's network says of its input (..., B, F), (..., B, W)."""
        return self.encoder.one(head, x, self.output)

    def heads(self, x: Tensor, legal: Tensor | None = None) -> Heads:
        """Distributions from the inputs of every network, (..., H, B, F)."""
        return self.heads_from(self.outputs(x).movedim(-3, -2), legal)

    def heads_from(self, outputs: Tensor, legal: Tensor | None = None) -> Heads:
        """Distributions from what every network says, (..., B, H, W)."""
        logits = ranges = None
        if self.layout.num_choices:
            mine = outputs.index_select(-2, self.layout.choices)
            logits = mine[..., : self.layout.max_options]
        if self.layout.num_ranges:
            mine = outputs.index_select(-2, self.layout.ranges)
            ranges = self.spread.distribution(mine[..., : self.spread.outputs_per_range])
        return Heads.from_logits(self.layout, logits, ranges, legal)

    def draw_from(
        self, head: int, outputs: Tensor, uniform: Tensor | None, legal: Tensor | None = None
    ) -> Tensor:
        """The raw value of one head (..., B), or its mode, from what its network says, (..., B, W).

        `uniform` has the columns of a whole action, of which only this head's are used, so that a
        head draws the same number whatever the order.
        """
        layout = self.layout
        if head in layout.choice_of:
            column = layout.choice_of[head]
            logits = outputs[..., : layout.max_options].masked_fill(~layout.mask[column], NEVER)
            if legal is not None:
                logits = logits.masked_fill(~legal[..., column, :], NEVER)
            if uniform is None:
                return logits.argmax(-1).float()
            return pick_options(torch.log_softmax(logits, dim=-1), uniform[..., column])
        ranges = self.range_from(head, outputs)
        if uniform is None:
            return ranges.mode().squeeze(-1)
        return ranges.draw(self.uniforms_of(head, uniform)).squeeze(-1)

    def range_from(self, head: int, outputs: Tensor) -> RangeDistribution:
        """The distribution of one Range (..., B, 1) from what its network says, (..., B, W)."""
        part = outputs[..., : self.spread.outputs_per_range]
        return self.spread.distribution(part.unsqueeze(-2), self.layout.range_of[head])

    def uniforms_of(self, head: int, uniform: Tensor) -> Tensor:
        """Those of a whole action's uniform numbers that one Range takes, (..., 1, each)."""
        each = self.spread.num_uniforms
        first = self.layout.num_choices + self.layout.range_of[head] * each
        return uniform[..., None, first : first + each]
