"""Rows of a member's own data."""

from __future__ import annotations

import torch
from torch import Tensor

_CACHED_ROWS = 256


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    """Rows (P, B, ...) of data (P, N, ...) by each member's own indices (P, B)."""
    members = torch.arange(x.shape[0], device=x.device).unsqueeze(-1)
    if x.device.type != "cpu" or not x.is_contiguous():
        return x[members, index]
    flat = (index + members * x.shape[1]).view(-1)  # whole rows are copied faster by one index
    return x.flatten(0, 1).index_select(0, flat).view(*index.shape, *x.shape[2:])


def latest_rows(x: Tensor, more: Tensor, most: int) -> Tensor:
    """The last of each member's rows (P, N, ...) and more of them, as many as may be kept."""
    return torch.cat([x, more], dim=1)[:, -most:].clone()


def rows_per_chunk(rows: int, device: torch.device) -> int:
    """How many of so many rows to look at together: on the CPU as many as fit into the cache."""
    return min(rows, _CACHED_ROWS) if device.type == "cpu" else rows
