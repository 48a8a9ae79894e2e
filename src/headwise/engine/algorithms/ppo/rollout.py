"""A rollout and its minibatches in buffers: what happened, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from headwise.heads.blueprint import Taken
from headwise.ops import Buffer


class Rows:
    """Rows by name, (P, 1, N, ...) each: a rollout, or a minibatch of it.

    Args:
        members: Members (P).
        rows: Rows (N).
        widths: Columns by name.
        device: Where they are.
    """

    def __init__(
        self, members: int, rows: int, widths: Mapping[str, int], device: torch.device
    ) -> None:
        self.num_rows = rows
        self.buffers = {
            name: Buffer(members, rows, width, device=device) for name, width in widths.items()
        }

    def __getitem__(self, name: str) -> Buffer:
        return self.buffers[name]

    def get(self, name: str) -> Buffer | None:
        """The buffer of that name, if there is one."""
        return self.buffers.get(name)

    def part(self, start: int, count: int) -> Rows:
        """Some of the rows."""
        some = Rows.__new__(Rows)
        some.num_rows = count
        some.buffers = {name: x.rows(start, count) for name, x in self.buffers.items()}
        return some

    def write(self, name: str, x: Tensor) -> None:
        """Takes numbers (P, T, E, ...) as rows, step after step."""
        to = self.buffers[name].tensor
        to.copy_(x.reshape(to.shape))

    @property
    def taken(self) -> Taken:
        """The actions."""
        names = ("mask", "old", "option", "probs", "in_use")
        return Taken(self["raw"], self["unit"], *(self.get(name) for name in names))
