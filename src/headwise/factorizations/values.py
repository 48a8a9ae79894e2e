"""Dueling values over heads, for DQN: V and max-centred advantages, mixed in one way or another.

Because the advantage of every head's best option is zero, the value of the greedy joint action is V
whatever the mixing, and each head's own maximum is the joint maximum.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.layout import Layout
from headwise.nets import Dueling


def max_centred(layout: Layout, advantage: Tensor, legal: Tensor | None = None) -> Tensor:
    """Advantages (..., D, K) minus their head's largest, so that the best option has zero."""
    masked = layout.masked(advantage, legal)
    return masked - masked.amax(-1, keepdim=True)


def chosen(advantage: Tensor, options: Tensor) -> Tensor:
    """The advantages (..., D, K) of given options (..., D)."""
    return advantage.gather(-1, options.unsqueeze(-1)).squeeze(-1)


class BranchingValue(nn.Module):
    """One dueling network for all heads; `mixed` says what its advantages add up to."""

    num_columns = 1

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__()
        self.layout = blueprint.layout
        self.net = Dueling(
            blueprint.init,
            blueprint.obs_size,
            self.layout.total_options,
            blueprint.hidden,
            blueprint.branch_width,
            blueprint.activation,
            orthogonal=blueprint.orthogonal,
        )

    def branches(self, obs: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The value (..., B), max-centred advantages (..., B, D, K), and the embedding."""
        embedding = self.net.embed(obs)
        value, flat = self.net.outputs(embedding)
        return value, max_centred(self.layout, self.layout.pad(flat), legal), embedding

    def mixed(self, value: Tensor, advantage: Tensor, embedding: Tensor, action: Tensor) -> Tensor:
        """The predictions (..., B, G) for chosen advantages (..., B, D): here their sum."""
        return (value + advantage.sum(-1)).unsqueeze(-1)

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """What is regressed on the target, (P, B, G)."""
        value, advantage, embedding = self.branches(obs, legal)
        picked = chosen(advantage, self.layout.choice_columns(action))
        return self.mixed(value, self.layout.used(picked, action), embedding, action)

    def best(self, obs: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The best action (P, B, H) and its predictions, which are V."""
        value, advantage, _ = self.branches(obs, legal)
        columns = value.unsqueeze(-1).expand(*value.shape, self.num_columns)
        return advantage.argmax(-1).float(), columns

    def joint(self, obs: Tensor, action: Tensor) -> Tensor:
        """The value of the joint action, (P, B)."""
        return self.predict(obs, action).squeeze(-1)

    def soft_heads(
        self, obs: Tensor, temperature: float, legal: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Log-policies softmax(A_h / t), (..., D, K), and soft values (..., B, G) of the state."""
        value, advantage, _ = self.branches(obs, legal)
        scaled = advantage / temperature
        gains = temperature * torch.logsumexp(scaled, dim=-1)
        log_policy = torch.log_softmax(scaled, dim=-1)
        likely = self.layout.activity(log_policy)
        return log_policy, self._soft_columns(value, gains if likely is None else gains * likely)

    def options(self, action: Tensor) -> Tensor:
        """The columns of `soft_heads` that an action picks, (..., D)."""
        return self.layout.choice_columns(action)

    def _soft_columns(self, value: Tensor, gains: Tensor) -> Tensor:
        return (value + gains.sum(-1)).unsqueeze(-1)
