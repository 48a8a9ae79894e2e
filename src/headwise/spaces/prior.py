"""What an observation space says of the size of its numbers, before any is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BOUND = 1e6
"""A bound of this size says nothing about what is seen."""
BOUND_ROWS = 1000.0
"""Rows that a prior from bounds counts as."""


@dataclass(frozen=True, eq=False)
class ObsPrior:
    """What a space says of the size of its numbers, before any is seen; arrays (O,)."""

    learned: NDArray[np.bool_]
    """Which numbers are scaled by what is seen; the others are divided by `std` for ever."""
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    rows: NDArray[np.float64]
    """How many rows the prior counts as; 0 where nothing is known."""

    @classmethod
    def of(cls, low: Any, high: Any) -> ObsPrior:
        """Of numbers between bounds: the middle, and a quarter of the width.

        Bounds that are one number, or not of a size below a million, say nothing.
        """
        low, high = (np.asarray(x, dtype=np.float64).ravel() for x in (low, high))
        known = (np.abs(low) < MOST_BOUND) & (np.abs(high) < MOST_BOUND) & (low < high)
        low, high = np.where(known, low, -2.0), np.where(known, high, 2.0)
        mean, std = 0.5 * (low + high), 0.25 * (high - low)
        return cls(np.ones_like(known), mean, std, BOUND_ROWS * known)

    @classmethod
    def fixed(cls, size: int, std: float = 1.0) -> ObsPrior:
        """Of numbers that are divided by a constant, whatever is seen."""
        zeros = np.zeros(size)
        return cls(np.zeros(size, dtype=np.bool_), zeros, zeros + std, zeros)

    @classmethod
    def unknown(cls, size: int) -> ObsPrior:
        """Of numbers of which nothing is known."""
        return cls.of(np.full(size, -np.inf), np.full(size, np.inf))

    @classmethod
    def joined(cls, parts: Sequence[ObsPrior]) -> ObsPrior:
        """Of several parts of a vector, in their order."""
        columns = [(p.learned, p.mean, p.std, p.rows) for p in parts]
        return cls(*(np.concatenate(one) for one in zip(*columns, strict=True)))

    @property
    def says_nothing(self) -> bool:
        """Whether all stays as it is."""
        return not self.learned.any() and bool((self.std == 1.0).all())
