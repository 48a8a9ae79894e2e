"""How PPO goes: each head's share of the policy gradient, and what values explain."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from headwise import ops
from headwise.ops import Buffer, RatioGroups, Scratch, operation


@operation(compiled=False)
def explained_variance(value: Tensor, target: Tensor, valid: Tensor) -> Tensor:
    """The share of the target's variance that values explain, over rows that count."""
    weights = valid / (valid.sum(-2, keepdim=True) * value.shape[-1]).clamp_min(1.0)

    def variance(x: Tensor) -> Tensor:
        mean = (x * weights).sum((-2, -1), keepdim=True)
        return ((x - mean).square() * weights).sum((-2, -1), keepdim=True)

    return 1.0 - variance(target - value) / variance(target).clamp_min(1e-12)


@operation(compiled=False)
def only_column(x: Tensor, *, column: int, count: int, times: int) -> Tensor:
    """One of the columns (P, 1, B, 1 or G), so many times, in its place; zeros elsewhere."""
    own = times * x[..., min(column, x.shape[-1] - 1)].unsqueeze(-1)
    zero = torch.zeros_like(own)
    return torch.cat([own if k == column else zero for k in range(count)], dim=-1)


@operation(compiled=False)
def gradient_shares(gradients: Tensor, *, ratios: RatioGroups) -> Tensor:
    """Each head's share of the lengths of gradients (P, 1, G, S), (P, 1, 1, H).

    Heads that have a ratio together have an equal share of its own.
    """
    norms = torch.linalg.vector_norm(gradients, dim=-1).unsqueeze(-2)
    shares = norms / norms.sum(-1, keepdim=True).clamp_min(1e-12)
    counts = ratios.sums(torch.ones(len(ratios.groups), device=norms.device))
    return ratios.spread(shares / counts)


@operation(compiled=False)
def summed_cosine(first: Tensor, second: Tensor) -> Tensor:
    """The cosine between the sums of gradients (P, 1, G, S), (P, 1, 1, 1)."""
    a, b = (x.sum(-2, keepdim=True) for x in (first, second))
    return torch.nn.functional.cosine_similarity(a, b, dim=-1, eps=1e-12).unsqueeze(-1)


class HeadGradients:
    """The gradient of each ratio's surrogate by the policy's parameters, over one minibatch.

    Args:
        gradient: The gradient of the policy's parameters, (P, 1, 1, S).
    """

    def __init__(self, gradient: Buffer, ratios: RatioGroups) -> None:
        self._gradient, self._ratios = gradient, ratios
        self._scratch = Scratch(gradient.members, gradient.device)
        self.shares = self._scratch("shares", 1, len(ratios.groups))
        """Each head's share of the lengths, (P, 1, 1, H)."""
        self.cosine = self._scratch("cosine", 1)
        """Between the gradient with importance weights and without, (P, 1, 1, 1)."""

    def measure(
        self, backward: Callable[[Buffer], None], advantage: Buffer, plain: Buffer | None
    ) -> None:
        """Shares of heads, and what weights do to the gradient.

        Args:
            backward: From advantages of all ratios to the gradient of the surrogate.
            advantage: The advantages, (P, 1, B, 1 or G).
            plain: That of every head before credit was shared out, if it was, (P, 1, B, 1).
        """
        groups = self._ratios.groups
        weighted = self._by_ratio("weighted", backward, advantage, [1] * len(groups))
        gradient_shares(weighted, ratios=self._ratios, out=self.shares)
        if plain is not None:
            sizes = [groups.count(group) for group in range(self._ratios.count)]
            unweighted = self._by_ratio("plain", backward, plain, sizes)
            summed_cosine(weighted, unweighted, out=self.cosine)

    def _by_ratio(
        self, name: str, backward: Callable[[Buffer], None], advantage: Buffer, times: Sequence[int]
    ) -> Buffer:
        count = self._ratios.count
        result = self._scratch(name, count, self._gradient.width)
        own = self._scratch("own", advantage.num_rows, count)
        for column in range(count):
            only_column(advantage, column=column, count=count, times=times[column], out=own)
            backward(own)
            ops.copy(self._gradient, out=result.rows(column, 1))
        return result
