"""Monotonic mixing of advantages: Q = V + f(A_1 ... A_H), with weights of its own for every row."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.ops.functions import elu, softplus
from headwise.ops.operation import operation


@operation(triton="mixture")
def mix(value: Tensor | None, advantage: Tensor, weights: Tensor) -> Tensor:
    """V + ELU(A |W1|) |W2|, (P, N, B, 1): QMIX over advantages, increasing in each, zero at zero.

    Args:
        value: V (P, N, B, 1), if there is one.
        advantage: (P, N, B, H).
        weights: W1, head by head, and then W2, (P, N, B, (H + 1) * E).
    """
    first, second = _split(advantage, weights)
    hidden = elu((advantage.unsqueeze(-1) * first).sum(-2))
    mixed = (hidden * second).sum(-1, keepdim=True)
    return mixed if value is None else value + mixed


@operation()
def mix_gradient(advantage: Tensor, weights: Tensor) -> Tensor:
    """How much each advantage counts where it is, (P, N, B, H): the mixture's derivatives."""
    first, second = _split(advantage, weights)
    inner = (advantage.unsqueeze(-1) * first).sum(-2)
    outer = second * torch.exp(inner.clamp_max(0.0))
    return (first * outer.unsqueeze(-2)).sum(-1)


@operation(compiled=False)
def weigh(value: Tensor, advantage: Tensor, weights: Tensor) -> Tensor:
    """V + sum_h lambda_h A_h with positive weights (P, N, B, H): QPLEX's (Wang et al., 2021)."""
    return value + ((softplus(weights) + 1e-3) * advantage).sum(-1, keepdim=True)


def _split(advantage: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """|W1| (..., H, E) and |W2| (..., E)."""
    heads = advantage.shape[-1]
    width = weights.shape[-1] // (heads + 1)
    first, second = torch.split(weights.abs(), [heads * width, width], dim=-1)
    return torch.unflatten(first, -1, (heads, width)), second
