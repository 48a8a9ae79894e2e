"""Arrays that a GPU copies from while the program goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray


def pinned(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Zeros in page-locked memory, for the `allocate` of environments whose learner is on a GPU."""
    kind = torch.from_numpy(np.empty(0, dtype=dtype)).dtype
    array: NDArray[Any] = torch.zeros(shape, dtype=kind, pin_memory=True).numpy()
    return array
