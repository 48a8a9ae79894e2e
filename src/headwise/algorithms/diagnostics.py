"""Numbers that tell how learning goes. They are tensors, (P,) or (P, H); nobody waits for them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headwise.algorithms.base import Metrics


class RunningMeans:
    """The mean of each metric over the gradient steps of an update, kept on the device."""

    def __init__(self) -> None:
        self._sums: Metrics = {}
        self._count = 0

    def add(self, metrics: Metrics) -> None:
        """Takes the numbers of one gradient step."""
        for name, x in metrics.items():
            x = x.detach()
            self._sums[name] = self._sums[name] + x if name in self._sums else x.clone()
        self._count += 1

    def result(self) -> Metrics:
        """The means so far."""
        return {name: x / self._count for name, x in self._sums.items()}


def explained_variance(value: Tensor, target: Tensor) -> Tensor:
    """The share of the target's variance that the value explains, (P,), over rows (P, N, G)."""
    error = (target - value).flatten(-2).var(-1)
    return 1.0 - error / target.flatten(-2).var(-1).clamp_min(1e-12)


def head_gradients(losses: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor:
    """The gradient of each head's loss (P, H) by all parameters, as rows (H, P, N).

    A member's loss touches its own parameters only, so one pass serves all members.
    """
    rows = []
    for loss in losses.unbind(-1):
        grads = torch.autograd.grad(
            loss.sum(), list(parameters), retain_graph=True, materialize_grads=True
        )
        rows.append(torch.cat([g.flatten(1) for g in grads], dim=-1))
    return torch.stack(rows)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """The cosine between rows (..., N)."""
    return torch.nn.functional.cosine_similarity(a, b, dim=-1, eps=1e-12)
