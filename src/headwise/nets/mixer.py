"""A monotonic mixer: many advantages to one, never against the sign of any of them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from headwise.nets.mixture import mixture, mixture_slope
from headwise.population import Initializer, Linear, softplus

MixerKind: TypeAlias = Literal["paper", "qplex"]


class Mixer(nn.Module):
    """Advantages (..., B, H) to their mixture (..., B), increasing in each and zero at zero.

    `paper` is ELU(A |W1(z)|) |W2(z)| with linear hypernetworks and no bias: QMIX over advantages.
    `qplex` is the rule of Wang et al. (2021), a positive weight for each advantage that may depend
    on the joint action as well: sum_h lambda_h(z, a) A_h with lambda > 0.

    Args:
        init: Where the first values come from.
        num_heads: Advantages to mix (H).
        state_size: The size of what the weights depend on (z).
        width: Hidden units of the mixture (E).
        kind: Which rule.
        action_size: For `qplex`, the size of the action's embedding.
        copies: Mixers that each member has several of, as stacked axes.
    """

    def __init__(
        self,
        init: Initializer,
        num_heads: int,
        state_size: int,
        width: int,
        kind: MixerKind = "paper",
        action_size: int = 0,
        *,
        copies: tuple[int, ...] = (),
    ) -> None:
        super().__init__()
        self.kind = kind
        self.num_heads = num_heads
        self.width = width
        if kind == "paper":
            self.first = Linear(init, state_size, num_heads * width, copies=copies)
            self.second = Linear(init, state_size, width, copies=copies)
        else:
            self.first = Linear(init, state_size + action_size, width, copies=copies)
            self.second = Linear(init, width, num_heads, copies=copies)

    def forward(
        self,
        advantage: Tensor,
        state: Tensor,
        action: Tensor | None = None,
        base: Tensor | None = None,
    ) -> Tensor:
        """The mixture, given the state and, for `qplex`, the embedded joint action.

        Args:
            advantage: What is mixed, (..., B, H).
            state: What the weights depend on, (..., B, state_size).
            action: The embedded joint action, (..., B, action_size).
            base: What the mixture is added to, (..., B), if anything.
        """
        if self.kind == "paper":
            return mixture(advantage, self.first(state), self.second(state), base)
        assert action is not None
        hidden = torch.relu(self.first(torch.cat([state, action], dim=-1)))
        weight = softplus(self.second(hidden)) + 1e-3
        mixed = (weight * advantage).sum(-1)
        return mixed if base is None else base + mixed

    @torch.no_grad()
    def slope(self, advantage: Tensor, state: Tensor) -> Tensor:
        """How much each advantage counts where it is, (..., B, H): the mixture's derivatives."""
        assert self.kind == "paper"
        return mixture_slope(advantage, self.first(state), self.second(state))

    def slope_at_zero(self, state: Tensor) -> Tensor:
        """How much each advantage counts near zero, (..., B, H): what a small step down costs."""
        assert self.kind == "paper"
        first = self.first(state).abs()
        first = first.view(*first.shape[:-1], self.num_heads, self.width)
        slope: Tensor = (first * self.second(state).abs().unsqueeze(-2)).sum(-1)
        return slope
