"""The episodes that have ended: what learning curves are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwise.envs.types import StepBatch


class Episodes:
    """A growing table of (step, member, return, length), one row for each episode that ended."""

    def __init__(self) -> None:
        self._rows: list[NDArray[np.float64]] = []

    def add(self, step: StepBatch, env_steps: int) -> None:
        """Takes note of the episodes that ended in a step; `env_steps` are those of each member."""
        ended = step.terminated | step.truncated
        if not ended.any():
            return
        ended &= step.valid
        member, slot = np.nonzero(ended)
        columns = (
            np.full(len(member), env_steps, dtype=np.float64),
            member,
            step.episode_return[member, slot],
            step.episode_length[member, slot],
        )
        self._rows.append(np.stack(columns, axis=-1))

    @property
    def table(self) -> NDArray[np.float64]:
        """All rows, (N, 4): env steps of the member, member, return, length."""
        if len(self._rows) > 1:
            self._rows = [np.concatenate(self._rows)]
        return self._rows[0] if self._rows else np.empty((0, 4))

    @table.setter
    def table(self, rows: NDArray[np.float64]) -> None:
        self._rows = [rows] if len(rows) else []

    def recent(
        self, num_members: int, episodes: int = 100
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean return and length of each member's last episodes, (P,); NaN before the first."""
        table = self.table
        means = np.full((2, num_members), np.nan)
        for member in range(num_members):
            mine = table[table[:, 1] == member, 2:][-episodes:]
            if len(mine):
                means[:, member] = mine.mean(axis=0)
        return means[0], means[1]

    def recent_return(self, num_members: int, episodes: int = 100) -> NDArray[np.float64]:
        """The mean return of each member's last episodes, (P,); NaN before the first."""
        return self.recent(num_members, episodes)[0]
