"""What an actor asks its critics: what every option of one head is worth, the others as drawn."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.factorizations.layout import Layout


class Questions:
    """One Choice head for each state of a batch, in turn.

    States come in no order, so what a head's share of them says is on average what all of them
    would; and the cost grows with the options of the largest head, not with the number of heads.

    Args:
        layout: The heads.
        rows: States of a batch (B).
    """

    def __init__(self, layout: Layout, rows: int) -> None:
        self.rows = rows
        heads, device = layout.num_choices, layout.device
        each = -(-heads // rows)  # heads for a state: one, unless there are more heads than states
        place = (torch.arange(rows * each, device=device) % heads).view(rows, each)
        asked = place.unsqueeze(-1) == torch.arange(heads, device=device)
        # What is said of a head stands for all states, also for those that were asked of others.
        self._stands_for = (asked * (rows / asked.sum((0, 1)))).unsqueeze(-1)  # (B, each, D, 1)
        owner = layout.choices[place].unsqueeze(-1)
        self._is_own = (owner == torch.arange(layout.num_heads, device=device)).unsqueeze(-2)
        self._option = torch.arange(layout.max_options, device=device).float().unsqueeze(-1)

    def actions(self, action: Tensor) -> Tensor:
        """Actions (P, B, H) with every option of the heads asked about, (P, B, each * K, H)."""
        asked = torch.where(self._is_own, self._option, action[..., None, None, :])
        return asked.flatten(-3, -2)

    def answers(self, worth: Tensor) -> Tensor:
        """The worth (P, B, each * K) of these actions, by head and option, (P, B, D, K).

        Zero for heads that were not asked about; on average over states it is what it would be had
        all been. Options that do not exist are worth something too: nobody draws them.
        """
        each, options = self._is_own.shape[1], self._option.shape[0]
        found = worth.view(*worth.shape[:-1], each, 1, options) * self._stands_for
        return found.squeeze(-3) if each == 1 else found.sum(-3)
