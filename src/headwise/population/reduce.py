"""Reductions that stay within a member: nothing here ever crosses dimension 0."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headwise.errors import ConfigError


def finite_members(x: Tensor) -> Tensor:
    """Which members have finite numbers only, (P,)."""
    return torch.isfinite(x).reshape(x.shape[0], -1).all(-1)


def per_member(
    value: float | Sequence[float], num_members: int, name: str, device: torch.device | str = "cpu"
) -> Tensor:
    """A setting that may vary by member, as a (P,) tensor: one number for all, or one for each."""
    values = [value] * num_members if isinstance(value, int | float) else list(value)
    if len(values) != num_members:
        raise ConfigError(
            f"{name} must be one number, or one for each member",
            got=f"{len(values)} numbers",
            allowed=f"1 or {num_members}",
        )
    tensor = torch.tensor(values, dtype=torch.float32)
    if not bool(torch.isfinite(tensor).all()):
        raise ConfigError(f"{name} must be finite", got=values)
    return tensor.to(device)


def along(values: Tensor, like: Tensor) -> Tensor:
    """Numbers of members (P,) shaped to multiply a tensor (P, ...)."""
    return values.view(-1, *[1] * (like.dim() - 1))
