"""Numbers that tell how learning goes. They are tensors, (P,) or (P, H); nobody waits for them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headwise.algorithms.base import Metrics
from headwise.population import along, member_mean

_AT_ONCE = 1024  # of the kernel: columns of rows in a block


class RunningMeans:
    """The mean of each metric over the gradient steps of an update, kept on the device."""

    def __init__(self) -> None:
        self._sums: Metrics = {}
        self._count = 0

    def add(self, metrics: Metrics) -> None:
        """Takes the numbers of one gradient step, which have the same names at every step."""
        numbers = {name: x.detach() for name, x in metrics.items()}
        if self._sums:  # all of them in one kernel
            torch._foreach_add_(list(self._sums.values()), [numbers[name] for name in self._sums])
        else:
            self._sums = {name: x.clone() for name, x in numbers.items()}
        self._count += 1

    def result(self) -> Metrics:
        """The means so far."""
        means = torch._foreach_div(list(self._sums.values()), self._count)
        return dict(zip(self._sums, means, strict=True))


@torch.no_grad()
def movement(log_ratio: Tensor, ratio: Tensor, valid: Tensor, clip: Tensor) -> Metrics:
    """How far a policy has come from the one that acted.

    Args:
        log_ratio: Of each column, new over old, (P, B, G).
        ratio: Those that are clipped, (P, B, R).
        valid: Which rows count, zeros and ones, (P, B, 1).
        clip: How far a ratio may move, (P,).
    """
    if log_ratio.device.type == "cuda":
        return _movement_kernel(log_ratio, ratio, valid, clip)
    outside = ((ratio - 1.0).abs() > along(clip, ratio)).float()
    kl = log_ratio.exp() - 1.0 - log_ratio
    return {
        "train/approx_kl": member_mean(kl.sum(-1, keepdim=True), valid),
        "train/clip_fraction": member_mean(outside, valid),
        "train/joint_ratio": member_mean(log_ratio.sum(-1, keepdim=True).exp(), valid),
        "heads/kl": kl.mean(-2),
        "heads/clip_fraction": outside.mean(-2),
    }


def _movement_kernel(log_ratio: Tensor, ratio: Tensor, valid: Tensor, clip: Tensor) -> Metrics:
    """`movement` as one kernel."""
    from headwise.algorithms.kernels.diagnostics import measure_movement

    (rows, columns), clipped, members = log_ratio.shape[-2:], ratio.shape[-1], clip.numel()
    width = max(1 << (max(columns, clipped) - 1).bit_length(), 2)
    sums = torch.empty((3, members), device=clip.device)
    kl = torch.empty((members, columns), device=clip.device)
    outside = torch.empty((members, clipped), device=clip.device)
    measure_movement[(members,)](
        log_ratio.contiguous(), ratio.contiguous(), valid.contiguous(), clip, sums, kl, outside,
        rows, columns, clipped, ROWS=max(_AT_ONCE // width, 1), COLUMNS=width,
    )  # fmt: skip
    names = ("train/approx_kl", "train/clip_fraction", "train/joint_ratio")
    by_head = {"heads/kl": kl, "heads/clip_fraction": outside}
    return dict(zip(names, sums.unbind(-2), strict=True)) | by_head


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
