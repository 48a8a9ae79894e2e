"""Rows of past rollouts, for a critic that learns from more than the last one."""

from __future__ import annotations

from torch import Tensor

from headwise.algorithms.ppo.buffers import Rows
from headwise.ops.operation import emit
from headwise.population.keys import Draws, Stream
from headwise.population.rows import latest_rows, take_rows

_KEPT = ("obs", "raw", "unit", "option", "reward", "next_obs", "terminated", "valid", "mask",
         "next_mask", "in_use")  # fmt: skip
_MASKS = ("mask", "next_mask")


class OfflineRows:
    """The latest rows of every member, the oldest dropped first.

    Args:
        capacity: The most rows of a member.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.rows: dict[str, Tensor] = {}
        self._index: Tensor | None = None
        self._next = 0

    def add(self, rollout: Rows, draws: Draws, epochs: int) -> None:
        """Takes in the rows of a rollout, and draws as many for each epoch."""
        new = {n: rollout[n].tensor[:, 0] for n in _KEPT if rollout.get(n) is not None}
        if self.rows:  # where there were no masks, every option was legal
            for one, other in ((new, self.rows), (self.rows, new)):
                for name in _MASKS:
                    if name in one and name not in other:
                        shape = (*other["obs"].shape[:2], one[name].shape[-1])
                        other[name] = one[name].new_ones(shape)
        for name, x in new.items():
            kept = self.rows.get(name, x[:, :0])
            self.rows[name] = latest_rows(kept, x, self.capacity)
        size = self.rows["obs"].shape[1]
        uniform = draws.uniform(Stream.REPLAY, epochs, rollout.num_rows)
        self._index, self._next = (uniform * size).long().flatten(1), 0

    def draw(self, out: Rows) -> None:
        """The next rows that were drawn."""

        def define() -> None:
            assert self._index is not None
            some = self._index[:, self._next : self._next + out.num_rows]
            self._next += out.num_rows
            for name, x in self.rows.items():
                buffer = out.get(name)
                if buffer is not None:
                    buffer.tensor.copy_(take_rows(x, some).unsqueeze(1))

        emit(define)

    def state_dict(self) -> dict[str, Tensor]:
        """All rows kept, each with the member axis first."""
        return {f"past_{name}": x.clone() for name, x in self.rows.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        names = [name for name in _KEPT if f"past_{name}" in state]
        self.rows = {name: state[f"past_{name}"].clone() for name in names}
