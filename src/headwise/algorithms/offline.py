"""Rows of past rollouts, for a critic that learns from more than the last one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from headwise.population import Draws, Stream, slice_rows, take_rows

_KEPT = ("obs", "raw", "bins", "reward", "next_obs", "terminated")


class OfflineRows:
    """The latest rows of every member, the oldest dropped first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.rows: dict[str, Tensor] = {}

    def add(self, rows: dict[str, Tensor]) -> None:
        """Takes in the rows of a rollout."""
        for name in _KEPT:
            x = rows[name]
            if name in self.rows:
                x = torch.cat([self.rows[name], x], dim=1)
            surplus = max(x.shape[1] - self.capacity, 0)
            self.rows[name] = slice_rows(x, surplus, x.shape[1] - surplus).clone()

    def draw(
        self, draws: Draws, epochs: int, num_rows: int
    ) -> Callable[[int, int, int], dict[str, Tensor]]:
        """As many rows for each epoch as a rollout has, found by (epoch, start, size)."""
        size = self.rows["obs"].shape[1]
        index = (draws.uniform(Stream.REPLAY, epochs, num_rows) * size).long()

        def part(epoch: int, start: int, size: int) -> dict[str, Tensor]:
            some = slice_rows(index[:, epoch], start, size)
            return {f"past_{name}": take_rows(x, some) for name, x in self.rows.items()}

        return part
