"""Transitions drawn from replay, in buffers: what DQN and SAC learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headwise.heads.layout import Layout
from headwise.ops import Buffer
from headwise.ops.buffers import Trace

if TYPE_CHECKING:
    from headwise.algorithms.base import ReplayBatch


class Transitions:
    """Rows of a batch, (P, 1, B, ...) each.

    Args:
        layout: The heads.
        members: Members (P).
        rows: Rows (B).
        features: Numbers of an observation.
        masked: Whether some options may not be chosen.
    """

    def __init__(
        self, layout: Layout, members: int, rows: int, features: int, *, masked: bool
    ) -> None:
        self._layout = layout

        def made(width: int) -> Buffer:
            return Buffer(members, rows, width, device=layout.device)

        self.obs, self.next_obs = made(features), made(features)
        self.action = made(layout.num_heads)
        """In unit form, in the learner's order."""
        self.reward, self.discount = made(1), made(1)
        self.mask = made(layout.total) if masked else None
        """Which options could be chosen; None: all always can."""
        self.next_mask = made(layout.total) if masked else None

    def load(self, batch: ReplayBatch) -> None:
        """Takes in tensors (P, B, ...)."""
        put(self.obs, batch.obs)
        put(self.next_obs, batch.next_obs)
        put(self.action, self._layout.to_learner(batch.action))
        put(self.reward, batch.reward.unsqueeze(-1))
        put(self.discount, batch.discount.unsqueeze(-1))
        if self.mask is not None and self.next_mask is not None:
            put_mask(self.mask, self._layout.mask(batch.legal))
            put_mask(self.next_mask, self._layout.mask(batch.next_legal))


def put(buffer: Buffer, x: Tensor) -> None:
    """Takes in numbers (P, B, W), as the first rows if there is room for more."""
    _rows_of(buffer, x).write(x.unsqueeze(1))


def put_mask(buffer: Buffer, mask: Tensor | None) -> None:
    """Takes in a mask (P, B, total) or (total,); without one every option may be chosen."""
    if mask is None:
        buffer.write(torch.ones_like(buffer.tensor))
    elif mask.dim() == 1:
        buffer.write(mask.expand_as(buffer.tensor))
    else:
        put(buffer, mask)


def _rows_of(buffer: Buffer, x: Tensor) -> Buffer:
    """As many rows as there are; in the graph of an export a buffer has those of its input."""
    return buffer if Trace.now is not None else buffer.rows(0, x.shape[1])
