"""Rows of a member's own data: gathering and shuffling, each member by its own indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

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


def shuffled(uniform: Tensor) -> Tensor:
    """A permutation of N for each member, (P, N), from uniform numbers (P, N)."""
    return torch.argsort(uniform, dim=-1, stable=True)


def batches_in_order(
    rows: Mapping[str, Tensor], order: Tensor, size: int
) -> Iterator[dict[str, Tensor]]:
    """Data (P, N, ...) by name as batches (P, size, ...), each member's rows in its own order.

    Rows are gathered once, and every batch is a contiguous part of what was gathered. The last one
    is smaller if `size` does not divide N.

    Args:
        rows: The data.
        order: Which row comes when, (P, N).
        size: Rows of a batch.
    """
    num_members, num_rows = order.shape
    first = torch.arange(0, num_members * num_rows, num_rows, device=order.device)
    flat = torch.split(order + first.unsqueeze(-1), size, dim=1)
    index = torch.cat([part.flatten() for part in flat])
    batches = {}
    for name, x in rows.items():
        parts = torch.split(x.flatten(0, 1).index_select(0, index), num_members * size)
        batches[name] = [part.view(num_members, -1, *x.shape[2:]) for part in parts]
    for k in range(len(flat)):
        yield {name: parts[k] for name, parts in batches.items()}


def row_by_row(
    function: Callable[[dict[str, Tensor]], dict[str, Tensor]], rows: dict[str, Tensor]
) -> dict[str, Tensor]:
    """What a function makes of data (P, N, ...) by name, where every row counts by itself.

    On the CPU it is given some rows at a time, so that what it works on stays in the cache.
    """
    some = next(iter(rows.values()))
    if some.device.type != "cpu" or some.shape[1] <= _CACHED_ROWS:
        return function(rows)
    parts = zip(*(torch.split(x, _CACHED_ROWS, dim=1) for x in rows.values()), strict=True)
    found = [function(dict(zip(rows, part, strict=True))) for part in parts]
    return {name: torch.cat([part[name] for part in found], dim=1) for name in found[0]}


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
