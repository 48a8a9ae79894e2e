"""Plain values, for DQN: a number for each option of each head, and no value of the state beside.

The value of an action is the sum of its options' numbers, or each is a prediction by itself. In one
network for all, a head that an action does not use counts as its best option would, so that it is
no reason to use it or not, and each head's own maximum is the joint maximum.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.parts.heads import chosen
from headwise.factorizations.parts.stacks import for_each_head
from headwise.factorizations.parts.values import best_options
from headwise.nets import MLP
from headwise.population import Linear


class PlainValue(nn.Module):
    """One network for all heads, or one for each, whose outputs are the values of options.

    Args:
        blueprint: Sizes, and where first values come from.
        adds_up: Whether the heads' numbers are added up to one prediction.
        stacked: Whether every head has a network of its own.
    """

    def __init__(
        self, blueprint: Blueprint, *, adds_up: bool = True, stacked: bool = False
    ) -> None:
        super().__init__()
        self.layout = layout = blueprint.layout
        self.adds_up, self.stacked = adds_up, stacked
        self.num_columns = 1 if adds_up else layout.num_heads
        copies = (layout.num_heads,) if stacked else ()
        self.encoder = MLP(
            blueprint.init,
            blueprint.obs_size,
            blueprint.hidden,
            blueprint.activation,
            copies=copies,
            gain=2.0**0.5 if blueprint.orthogonal else None,
        )
        self.output = Linear(
            blueprint.init,
            self.encoder.out_features,
            layout.max_options if stacked else layout.total_options,
            copies=copies,
        )

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """What is regressed on the target, (P, B, G)."""
        padded = self._padded(self._said(obs))
        picked = chosen(padded, self.options(action))
        if self.layout.is_conditional and not self.stacked:
            best = self.layout.masked(padded, legal).amax(-1)
            picked = torch.where(self.layout.active(action) > 0.0, picked, best)
        return self._columns(picked)

    def best(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """Each head's best option, (P, B, H)."""
        return best_options(self.layout, self._said(obs), legal, stacked=self.stacked)

    def best_value(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """What is predicted for the best action, (P, B, G)."""
        padded = self._padded(self._said(obs))
        return self._columns(self.layout.masked(padded, legal).amax(-1))

    def joint(self, obs: Tensor, action: Tensor) -> Tensor:
        """The value of the joint action, (P, B): the mean where heads have each their own."""
        return self.predict(obs, action).mean(-1)

    def soft_heads(
        self, obs: Tensor, temperature: float, legal: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Log-policies softmax(Q_h / t), (..., D, K), and soft values (..., B, G) of the state."""
        masked = self.layout.masked(self._padded(self._said(obs)), legal)
        best = masked.amax(-1)
        scaled = (masked - best.unsqueeze(-1)) / temperature
        gains = temperature * torch.logsumexp(scaled, dim=-1)
        log_policy = torch.log_softmax(scaled, dim=-1)
        likely = None if self.stacked else self.layout.activity(log_policy)
        return log_policy, self._columns(best + (gains if likely is None else gains * likely))

    def options(self, action: Tensor) -> Tensor:
        """The columns of `soft_heads` that an action picks, (..., D)."""
        return self.layout.choice_columns(action)

    def _said(self, obs: Tensor) -> Tensor:
        """What the networks say: of all options (..., B, total), or stacked (..., H, B, K)."""
        x = for_each_head(obs, self.layout.num_heads) if self.stacked else obs
        said: Tensor = self.encoder(x, self.output)
        return said

    def _padded(self, said: Tensor) -> Tensor:
        """What `_said` gives, as (..., B, D, K)."""
        return said.movedim(-3, -2) if self.stacked else self.layout.pad(said)

    def _columns(self, by_head: Tensor) -> Tensor:
        """Numbers of heads (..., B, D) as predictions (..., B, G)."""
        return by_head.sum(-1, keepdim=True) if self.adds_up else by_head
