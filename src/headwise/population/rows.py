"""Rows of a member's own data: gathering and shuffling, each member by its own indices."""

from __future__ import annotations

import torch
from torch import Tensor


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    """Rows (P, B, ...) of data (P, N, ...) by each member's own indices (P, B)."""
    members = torch.arange(x.shape[0], device=x.device).unsqueeze(-1)
    return x[members, index]


def shuffled(uniform: Tensor) -> Tensor:
    """A permutation of N for each member, (P, N), from uniform numbers (P, N)."""
    return torch.argsort(uniform, dim=-1, stable=True)


def slice_rows(x: Tensor, start: int, size: int) -> Tensor:
    """A run of each member's rows: (P, N, ...) to (P, size, ...), without a copy."""
    return x.narrow(1, start, size)


def latest_rows(x: Tensor, more: Tensor, most: int) -> Tensor:
    """The last of each member's rows (P, N, ...) and more of them, as many as may be kept."""
    return torch.cat([x, more], dim=1)[:, -most:].clone()


def even_rows(x: Tensor) -> Tensor:
    """The same numbers (..., B, F) with all rows equally far apart, for kernels that count rows."""
    steps, sizes = x.stride(), x.shape
    even = all(steps[d] == steps[d + 1] * sizes[d + 1] for d in range(x.dim() - 2) if sizes[d] > 1)
    return x if even else x.contiguous()
