"""Functions that round the same wherever a number stands in memory.

A vectorized kernel treats the last few numbers of a tensor by another routine than the rest. For
most functions both round alike; for torch's `softplus`, `elu` and `pow` they do not, so a member's
result would depend on who its neighbors are. These are made of parts that do.
"""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x))."""
    return x.clamp_min(0.0) + torch.log1p(torch.exp(-x.abs()))


def elu(x: Tensor) -> Tensor:
    """X above zero, exp(x) - 1 below; its gradient at zero is 1, where greedy advantages are."""
    return torch.where(x > 0.0, x, torch.expm1(x.clamp_max(0.0)))


def relu_from_zero(x: Tensor) -> Tensor:
    """X from zero on, zero below; its gradient is 1 at zero, as that of `elu`."""
    return x.masked_fill(x < 0.0, 0.0)


def power(x: Tensor, exponent: float | Tensor) -> Tensor:
    """Positive numbers to a power."""
    return (x.log() * exponent).exp()


def normal_of(uniform: Tensor) -> Tensor:
    """Uniform numbers in [0, 1) as standard normal ones, each by itself."""
    # Shifted by half a step of the 24-bit grid: symmetric about 1/2, and never 0 or 1.
    return torch.erfinv(uniform.mul(2.0).add(2.0**-24 - 1.0)) * math.sqrt(2.0)


def constant(values: tuple[float, ...], like: Tensor) -> Tensor:
    """Numbers where a tensor is; made once, because captured code may not copy from the host."""
    return _constant(values, like.dtype, like.device)


def indices(values: tuple[int, ...], like: Tensor) -> Tensor:
    """Whole numbers where a tensor is; see `constant`."""
    return _indices(values, like.device)


@cache
def _indices(values: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(values, device=device)


@cache
def _constant(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=dtype, device=device)
