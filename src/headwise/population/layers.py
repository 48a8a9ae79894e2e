"""Layers whose parameters have a member axis first: one kernel serves the whole population.

Parameters are (P, *copies, in, out). Copies are networks that a member has several of, such as one
for each head or a pair of twin critics; they are one more stacked axis, not a Python loop.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from headwise.population.keys import Keys, Stream, to_normal


class Initializer:
    """Numbers the layers of a network as they are made.

    The number is a layer's address in the INIT stream: two networks built in the same order from
    the same seeds begin equal, and no two layers of a network begin alike.
    """

    def __init__(self, keys: Keys, first: int = 0) -> None:
        self.keys = keys
        self._next = first

    def uniform(self, *shape: int) -> Tensor:
        """Numbers in [0, 1) for the next layer, (P, *shape)."""
        self._next += 1
        return self.keys.uniform(Stream.INIT, self._next - 1, shape)


class Linear(nn.Module):
    """Stacked `nn.Linear`: (P, *copies, B, in) to (P, *copies, B, out).

    Args:
        init: Where the first values come from.
        in_features: Inputs.
        out_features: Outputs.
        copies: Sizes of the stacked axes between the member and the batch.
        gain: The gain of an orthogonal initialisation without bias; None takes nn.Linear's own,
            uniform within 1 / sqrt(in).
    """

    def __init__(
        self,
        init: Initializer,
        in_features: int,
        out_features: int,
        *,
        copies: tuple[int, ...] = (),
        gain: float | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        num_copies = math.prod(copies)
        shape = (init.keys.num_members, *copies)
        bound = 1.0 / math.sqrt(in_features)
        unit = init.uniform(num_copies, (in_features + 1) * out_features)
        weight, bias = unit[..., :-out_features], unit[..., -out_features:]
        if gain is not None:
            rows = to_normal(weight).reshape(*shape, in_features, out_features)
            weight, bias = gain * _orthogonal(rows), torch.zeros_like(bias)
        else:
            weight, bias = (weight * 2.0 - 1.0) * bound, (bias * 2.0 - 1.0) * bound
        self.weight = nn.Parameter(weight.reshape(*shape, in_features, out_features).contiguous())
        self.bias = nn.Parameter(bias.reshape(*shape, 1, out_features).contiguous())

    def forward(self, x: Tensor) -> Tensor:
        """(P, *copies, B, in) to (P, *copies, B, out)."""
        if self.out_features == 1:
            # A product with a single column is another routine for one member than for many, and
            # would round differently; a sum along the row is the same for all.
            return (x * self.weight.transpose(-1, -2)).sum(-1, keepdim=True) + self.bias
        stack = x.shape[:-2]
        flat = torch.baddbmm(self.bias.flatten(0, -3), x.flatten(0, -3), self.weight.flatten(0, -3))
        return flat.view(*stack, *flat.shape[-2:])

    def one(self, copy: int, x: Tensor) -> Tensor:
        """The same for one of the copies alone: (P, B, in) to (P, B, out)."""
        weight, bias = self.weight.select(-3, copy), self.bias.select(-3, copy)
        if self.out_features == 1:
            return (x * weight.transpose(-1, -2)).sum(-1, keepdim=True) + bias
        return torch.baddbmm(bias, x, weight)

    def extra_repr(self) -> str:
        """The sizes, for printing."""
        return f"{self.in_features} -> {self.out_features}, stack {tuple(self.weight.shape[:-2])}"


class LayerNorm(nn.Module):
    """Stacked `nn.LayerNorm` over the last dimension, with its own scale and shift per member."""

    def __init__(
        self, init: Initializer, features: int, *, copies: tuple[int, ...] = (), eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.eps = eps
        shape = (init.keys.num_members, *copies, 1, features)
        self.weight = nn.Parameter(torch.ones(shape, device=init.keys.device))
        self.bias = nn.Parameter(torch.zeros(shape, device=init.keys.device))

    def forward(self, x: Tensor) -> Tensor:
        """Normalises the last dimension."""
        normal: Tensor = torch.nn.functional.layer_norm(x, x.shape[-1:], eps=self.eps)
        return normal * self.weight + self.bias


def _orthogonal(rows: Tensor) -> Tensor:
    """The orthogonal factor of each matrix (..., in, out), with the signs that make it uniform."""
    tall = rows if rows.shape[-2] >= rows.shape[-1] else rows.transpose(-1, -2)
    factors = torch.linalg.qr(tall)
    q: Tensor = factors.Q * torch.diagonal(factors.R, dim1=-2, dim2=-1).sign().unsqueeze(-2)
    return q if rows.shape[-2] >= rows.shape[-1] else q.transpose(-1, -2)
