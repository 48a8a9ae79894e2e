"""What an actor asks its critics: what every option of one head is worth, the others as drawn."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.factorizations.parts.layout import Layout

_MOST = 16
"""Options a state of the batch may be asked about on average: what an update may cost."""


class Questions:
    """States of a batch take turns with the Choice heads; each is asked about one.

    States come in no order, so what some of them say of a head is on average what all would say.
    Where heads have very many options fewer states are asked, but about every head one at least.

    Args:
        layout: The heads.
        rows: States of a batch (B).
    """

    def __init__(self, layout: Layout, rows: int) -> None:
        self.rows = rows
        heads, device = layout.num_choices, layout.device
        turns = max(1, int(rows / heads * min(1.0, _MOST * heads / layout.total_options)))
        turn = torch.arange(turns * heads)
        sizes = torch.tensor(layout.sizes)[turn % heads]
        row, head = ((turn % n).repeat_interleave(sizes) for n in (rows, heads))
        option = torch.arange(len(row)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
        self._row, self._option = row.to(device), option.float().unsqueeze(-1).to(device)
        columns = torch.arange(layout.num_heads, device=device)
        self._is_own = layout.choices[head.to(device)].unsqueeze(-1) == columns
        shape = (rows, heads, layout.max_options)
        where, stands_for = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
        where[row, head, option] = torch.arange(len(row))
        stands_for[row, head, option] = rows / turns
        self._where, self._stands_for = where.to(device), stands_for.to(device)

    def states(self, obs: Tensor) -> Tensor:
        """Observations (P, B, F) of the states, once for each option asked about, (P, N, F)."""
        return obs.index_select(-2, self._row)

    def actions(self, action: Tensor) -> Tensor:
        """Actions (P, B, H) with these options, (P, N, H)."""
        return torch.where(self._is_own, self._option, action.index_select(-2, self._row))

    def answers(self, worth: Tensor) -> Tensor:
        """What they are worth (P, N), by head and option, (P, B, D, K).

        Zero where nothing was asked; the mean over states is what it would be on average had all
        been asked about all heads.
        """
        found = worth.index_select(-1, self._where.flatten())
        return found.view(*worth.shape[:-1], *self._where.shape) * self._stands_for
