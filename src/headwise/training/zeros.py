"""Zeros that take no memory before they are written to, where the system can do that."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def zeros(shape: tuple[int, ...], kind: torch.dtype, device: torch.device) -> Tensor:
    """Zeros; on the CPU the system gives pages only when something is written to them."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=kind, device=device)
    like = torch.empty(0, dtype=kind).numpy().dtype
    return torch.from_numpy(np.zeros(shape, dtype=like))
