"""Functions that round the same wherever a number stands in memory.

A vectorised kernel treats the last few numbers of a tensor by another routine than the rest. For
most functions both round alike; for `softplus`, `elu`, `sigmoid` and `pow` they do not (torch
2.13), so a member's result would depend on who its neighbours are. These are made of parts that do.
"""

from __future__ import annotations

import torch
from torch import Tensor


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x))."""
    return x.clamp_min(0.0) + torch.log1p(torch.exp(-x.abs()))


def elu(x: Tensor) -> Tensor:
    """X above zero, exp(x) - 1 below."""
    return x.clamp_min(0.0) + torch.expm1(x.clamp_max(0.0))


def power(x: Tensor, exponent: float) -> Tensor:
    """Positive numbers to a power."""
    return (x.log() * exponent).exp()
