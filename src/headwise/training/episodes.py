"""The episodes that have ended: what learning curves are made of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwise.envs.types import StepBatch

_Column: TypeAlias = NDArray[Any]
_Rows: TypeAlias = NDArray[np.float64]

RECENT_EPISODES = 1000
"""The last episodes of each member that are known without going through all of them."""


class Episodes:
    """A growing table of (step, member, return, length), one row for each episode that ended.

    Args:
        keep: Rows that are kept, the last ones; None keeps all.
    """

    def __init__(self, keep: int | None = None) -> None:
        self._keep = keep
        self._parts: list[_Rows] = [np.empty((0, 4))]
        self._fresh: list[tuple[_Column, ...]] = []  # in no part yet
        # Returns and lengths (n, 2) of each member, n <= RECENT_EPISODES.
        self._last: dict[int, _Rows] = {}

    def add(self, step: StepBatch, env_steps: int) -> None:
        """Takes note of the episodes that ended in a step; `env_steps` are those of each member."""
        ended = step.terminated | step.truncated
        if not ended.any():
            return
        ended &= step.valid
        where = ended.nonzero()
        steps = np.full(len(where[0]), env_steps)
        self.append(steps, where[0], step.episode_return[where], step.episode_length[where])

    def append(self, steps: _Column, members: _Column, returns: _Column, lengths: _Column) -> None:
        """Takes note of episodes (n,) that ended, in their order."""
        # Columns are put together on demand: this is done at every step.
        self._fresh.append((steps, members, returns, lengths))

    @property
    def table(self) -> _Rows:
        """All rows that are kept, (N, 4): env steps of the member, member, return, length."""
        self._gather()
        rows = np.concatenate(self._parts)
        self._parts = [rows if self._keep is None else rows[-self._keep :]]
        return self._parts[0]

    @table.setter
    def table(self, rows: _Rows) -> None:
        self._parts, self._fresh, self._last = [np.empty((0, 4))], [], {}
        self._take(rows.reshape(-1, 4))

    def last(self, member: int, episodes: int = RECENT_EPISODES) -> tuple[_Rows, _Rows]:
        """The returns and the lengths of a member's last episodes, (n,) each, the latest last."""
        assert episodes <= RECENT_EPISODES
        self._gather()
        rows = self._last.get(member, np.empty((0, 2)))[-episodes:]
        return rows[:, 0], rows[:, 1]

    def recent_return(self, num_members: int, episodes: int = 100) -> _Rows:
        """The mean return of each member's last episodes, (P,); NaN before the first."""
        returns = (self.last(member, episodes)[0] for member in range(num_members))
        return np.array([mine.mean() if len(mine) else np.nan for mine in returns])

    def _gather(self) -> None:
        if not self._fresh:
            return
        columns = [np.concatenate(column) for column in zip(*self._fresh, strict=True)]
        self._fresh = []
        self._take(np.stack(columns, axis=-1))

    def _take(self, rows: _Rows) -> None:
        """Adds rows to the table, and to what is known of each member."""
        if not len(rows):
            return
        self._parts.append(rows)
        if self._keep is not None and sum(map(len, self._parts)) > 2 * self._keep:
            self._parts = [np.concatenate(self._parts)[-self._keep :]]
        by_member = rows[np.argsort(rows[:, 1], kind="stable")]
        members, starts = np.unique(by_member[:, 1], return_index=True)
        for member, mine in zip(members, np.split(by_member, starts[1:]), strict=True):
            known = self._last.get(int(member), np.empty((0, 2)))
            self._last[int(member)] = np.concatenate([known, mine[:, 2:]])[-RECENT_EPISODES:]
