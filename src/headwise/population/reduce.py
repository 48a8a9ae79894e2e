"""Reductions that stay within a member: nothing here ever crosses dimension 0."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headwise.errors import ConfigError


def member_sum(x: Tensor) -> Tensor:
    """The sum over everything but the member, (P,)."""
    return x.reshape(x.shape[0], -1).sum(-1)


def member_mean(x: Tensor, weight: Tensor | None = None) -> Tensor:
    """The mean over everything but the member, (P,), with weights if some rows do not count."""
    if weight is None:
        return x.reshape(x.shape[0], -1).mean(-1)
    weight = weight.expand_as(x)
    return member_sum(x * weight) / member_sum(weight).clamp_min(1.0)


def row_shares(weight: Tensor) -> Tensor:
    """Weights of rows as shares of their member's total: `member_sum` with them is a mean."""
    return weight / along(member_sum(weight).clamp_min(1.0), weight)


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
    tensor = torch.tensor(values, dtype=torch.float32, device=device)
    if not bool(torch.isfinite(tensor).all()):
        raise ConfigError(f"{name} must be finite", got=values)
    return tensor


def along(values: Tensor, like: Tensor) -> Tensor:
    """Numbers of members (P,) shaped to multiply a tensor (P, ...)."""
    return values.view(-1, *[1] * (like.dim() - 1))
