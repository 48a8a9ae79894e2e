"""The episodes that have ended: what learning curves are made of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwise.envs.types import StepBatch

_Column: TypeAlias = NDArray[Any]


class Episodes:
    """A growing table of (step, member, return, length), one row for each episode that ended."""

    def __init__(self) -> None:
        self._table = np.empty((0, 4))
        self._fresh: list[tuple[int, _Column, _Column, _Column]] = []  # not in the table yet

    def add(self, step: StepBatch, env_steps: int) -> None:
        """Takes note of the episodes that ended in a step; `env_steps` are those of each member."""
        ended = step.terminated | step.truncated
        if not ended.any():
            return
        ended &= step.valid
        # Columns are put together when somebody asks: this is done at every step.
        where = ended.nonzero()
        columns = (where[0], step.episode_return[where], step.episode_length[where])
        self._fresh.append((env_steps, *columns))

    @property
    def table(self) -> NDArray[np.float64]:
        """All rows, (N, 4): env steps of the member, member, return, length."""
        if self._fresh:
            steps, members, returns, lengths = zip(*self._fresh, strict=True)
            columns = (
                np.repeat(np.array(steps), [len(member) for member in members]),
                *(np.concatenate(column) for column in (members, returns, lengths)),
            )
            self._table = np.concatenate([self._table, np.stack(columns, axis=-1)])
            self._fresh = []
        return self._table

    @table.setter
    def table(self, rows: NDArray[np.float64]) -> None:
        self._table, self._fresh = rows.reshape(-1, 4), []

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
