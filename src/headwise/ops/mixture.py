"""Monotonic mixing of advantages: Q = V + f(A_1 ... A_H), with weights of its own for every row."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.ops.functions import elu, relu_from_zero, softplus
from headwise.ops.operation import operation


@operation(triton="mixture")
def mix(
    value: Tensor | None, advantage: Tensor, weights: Tensor, *, relu: bool, soft: bool
) -> Tensor:
    """V + ELU(A |W1|) |W2|, (P, N, B, 1): QMIX over advantages, increasing in each, zero at zero.

    Args:
        value: V (P, N, B, 1), if there is one.
        advantage: (P, N, B, H).
        weights: W1, head by head, and then W2, (P, N, B, (H + 1) * E).
        relu: A ReLU in place of the ELU.
        soft: softplus(W) in place of |W|.
    """
    first, second = split(advantage, weights, soft=soft)
    hidden = bent((advantage.unsqueeze(-1) * first).sum(-2), relu=relu)
    mixed = (hidden * second).sum(-1, keepdim=True)
    return mixed if value is None else value + mixed


@operation()
def mix_gradient(advantage: Tensor, weights: Tensor, *, relu: bool, soft: bool) -> Tensor:
    """How much each advantage counts where it is, (P, N, B, H): the mixture's derivatives."""
    first, second = split(advantage, weights, soft=soft)
    inner = (advantage.unsqueeze(-1) * first).sum(-2)
    derivative = (inner >= 0.0).to(inner.dtype) if relu else torch.exp(inner.clamp_max(0.0))
    outer = second * derivative
    return (first * outer.unsqueeze(-2)).sum(-1)


@operation(compiled=False)
def weigh(value: Tensor, advantage: Tensor, weights: Tensor) -> Tensor:
    """V + sum_h lambda_h A_h with positive weights (P, N, B, H): QPLEX's (Wang et al., 2021)."""
    return value + ((softplus(weights) + 1e-3) * advantage).sum(-1, keepdim=True)


def bent(x: Tensor, *, relu: bool) -> Tensor:
    """Hidden units of a mixer."""
    return relu_from_zero(x) if relu else elu(x)


def split(advantage: Tensor, weights: Tensor, *, soft: bool) -> tuple[Tensor, Tensor]:
    """|W1| (..., H, E) and |W2| (..., E)."""
    heads = advantage.shape[-1]
    width = weights.shape[-1] // (heads + 1)
    sizes = softplus(weights) if soft else weights.abs()
    first, second = torch.split(sizes, [heads * width, width], dim=-1)
    return torch.unflatten(first, -1, (heads, width)), second
