"""The interquartile mean, which evaluations and reports both speak of. Without torch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def interquartile_mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over the last axis of what is left without the lowest and highest quarter."""
    ordered = np.sort(values, axis=-1)
    number = ordered.shape[-1]
    cut = number // 4
    middle: NDArray[np.float64] = ordered[..., cut : number - cut].mean(axis=-1)
    return middle
