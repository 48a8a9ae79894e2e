"""Shared encoder: one network with an output for every head.

As a policy each head is drawn by itself. As a value each head is trained on the global return by
itself, the others being noise to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from headwise.factorizations.base import (
    Blueprint,
    Factorization,
    Judged,
    Policy,
    Value,
    factorizations,
)
from headwise.factorizations.parts.critics import ValueCritic
from headwise.factorizations.parts.heads import Heads
from headwise.factorizations.parts.plain import PlainValue
from headwise.factorizations.parts.spread import Spread
from headwise.factorizations.parts.values import BranchingValue
from headwise.factorizations.soft.base import Soft
from headwise.factorizations.soft.concat import ConcatSoft
from headwise.nets import MLP
from headwise.population import Linear


class SharedPolicy(nn.Module):
    """One encoder; logits for every option, and a distribution for every Range."""

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__()
        layout = blueprint.layout
        self.layout = layout
        self.num_columns = layout.num_heads
        self.encoder = MLP(
            blueprint.init, blueprint.obs_size, blueprint.hidden, blueprint.activation
        )
        self.spread = Spread(blueprint)
        self.num_uniforms = layout.num_choices + layout.num_ranges * self.spread.num_uniforms
        self._num_range_outputs = layout.num_ranges * self.spread.outputs_per_range
        self.output = Linear(
            blueprint.init,
            self.encoder.out_features,
            self._num_range_outputs + layout.total_options,
            gain=blueprint.policy_gain,
        )

    def flat_logits(self, obs: Tensor) -> Tensor:
        """Logits of all options (P, B, total) of a policy without Range heads."""
        assert not self.layout.num_ranges
        return self.outputs(obs)

    def logits(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """`flat_logits` padded and masked, (P, B, D, K)."""
        return self.layout.masked(self.layout.pad(self.flat_logits(obs)), legal)

    def outputs(self, obs: Tensor) -> Tensor:
        """What the network says, (P, B, W): numbers for every Range, then logits of all options."""
        outputs: Tensor = self.encoder(obs, self.output)
        return outputs

    def heads(self, obs: Tensor, legal: Tensor | None = None) -> Heads:
        """The distribution of the action, given observations."""
        outputs = self.outputs(obs)
        logits = ranges = None
        numbers = flat = outputs
        if self.layout.num_choices and self.layout.num_ranges:
            sizes = [self._num_range_outputs, self.layout.total_options]
            numbers, flat = torch.split(outputs, sizes, dim=-1)  # one kernel on the way back
        if self.layout.num_choices:
            logits = self.layout.pad(flat)
        if self.layout.num_ranges:
            pairs = numbers.view(*outputs.shape[:-1], self.layout.num_ranges, -1)
            ranges = self.spread.distribution(pairs)
        return Heads.from_logits(self.layout, logits, ranges, legal)

    def sample(
        self, obs: Tensor, uniform: Tensor, legal: Tensor | None = None
    ) -> tuple[Tensor, Judged]:
        """Draws raw actions and judges them."""
        heads = self.heads(obs, legal)
        raw, log_prob = heads.sample(uniform)
        return raw, Judged(log_prob, heads)

    def judge(self, obs: Tensor, raw: Tensor, legal: Tensor | None = None) -> Judged:
        """Log-probabilities and entropies of given raw actions, head by head."""
        heads = self.heads(obs, legal)
        return Judged(heads.log_prob(raw), heads)

    def mode(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The raw actions to take when chance is not wanted."""
        return self.heads(obs, legal).mode()

    def to_unit(self, raw: Tensor) -> Tensor:
        """Raw actions in the learner's form."""
        return self.spread.to_unit(self.layout, raw)


class SharedValue(BranchingValue):
    """Every head predicts V + A_h by itself; nothing is mixed."""

    adds_up = False

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__(blueprint)
        self.num_columns = self.layout.num_heads

    def joint(self, obs: Tensor, action: Tensor) -> Tensor:
        """The mean of the heads' predictions."""
        return self.predict(obs, action).mean(-1)

    def _soft_columns(self, value: Tensor, gains: Tensor) -> Tensor:
        return value.unsqueeze(-1) + gains


@factorizations.register("shared")
@dataclass(frozen=True, kw_only=True)
class Shared(Factorization):
    """One encoder for all heads, nothing mixed (SAC: the critic sees the whole action)."""

    name: ClassVar[str] = "shared"
    has_soft_heads: ClassVar[bool] = True
    has_plain_value: ClassVar[bool] = True

    def policy(self, blueprint: Blueprint) -> Policy:
        """A policy whose heads share an encoder."""
        return SharedPolicy(blueprint)

    def critic(self, blueprint: Blueprint) -> ValueCritic:
        """One value for all heads."""
        return ValueCritic(blueprint)

    def value(self, blueprint: Blueprint) -> Value:
        """V + A_h for each head by itself, or a plain Q_h."""
        return SharedValue(blueprint) if blueprint.dueling else PlainValue(blueprint, adds_up=False)

    def soft(self, blueprint: Blueprint) -> Soft:
        """SAC-Concat: an actor over all heads, critics that see the whole action."""
        return ConcatSoft(blueprint, SharedPolicy)
