"""Rows of past rollouts, for a critic that learns from more than the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor

from headwise.population import Draws, Stream, latest_rows, slice_rows, take_rows

_KEPT = ("obs", "raw", "bins", "reward", "next_obs", "terminated", "valid", "legal", "next_legal")
_MASKS = {"legal", "next_legal"}

PastRows: TypeAlias = Callable[[int, int, int], dict[str, Tensor]]
"""Rows drawn from the past, by (epoch, start, size)."""


class OfflineRows:
    """The latest rows of every member, the oldest dropped first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.rows: dict[str, Tensor] = {}

    def add(self, rows: dict[str, Tensor]) -> None:
        """Takes in the rows of a rollout."""
        rows = {name: rows[name] for name in _KEPT if name in rows}
        if self.rows:  # where there were no masks, every option was legal
            for one, other in ((rows, self.rows), (self.rows, rows)):
                for name in _MASKS & one.keys() - other.keys():
                    shape = (*other["obs"].shape[:2], *one[name].shape[2:])
                    other[name] = one[name].new_ones(shape)
        for name, x in rows.items():
            kept = self.rows.get(name, slice_rows(x, 0, 0))
            self.rows[name] = latest_rows(kept, x, self.capacity)

    def state_dict(self) -> dict[str, Tensor]:
        """All rows kept, each with the member axis first."""
        return {f"past_{name}": x.clone() for name, x in self.rows.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        names = [name for name in _KEPT if f"past_{name}" in state]
        self.rows = {name: state[f"past_{name}"].clone() for name in names}

    def draw(self, draws: Draws, epochs: int, num_rows: int) -> PastRows:
        """As many rows for each epoch as a rollout has."""
        size = self.rows["obs"].shape[1]
        index = (draws.uniform(Stream.REPLAY, epochs, num_rows) * size).long()

        def part(epoch: int, start: int, size: int) -> dict[str, Tensor]:
            some = slice_rows(index[:, epoch], start, size)
            return {f"past_{name}": take_rows(x, some) for name, x in self.rows.items()}

        return part
