"""The error of predictions against a bootstrapped target, and the slope of its loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from headwise.algorithms.base import Metrics
from headwise.population import along, member_mean, member_sum

_BLOCK = 256


@dataclass(frozen=True)
class TDError:
    """Predictions (P, B, G), what they are regressed on, and how much each error counts.

    The target is reward + discount * following; a member's loss is the weighted sum of the losses
    of its errors.
    """

    predicted: Tensor
    """(P, B, G), without gradients."""
    reward: Tensor
    """(P, B, 1), or (P, B, G)."""
    discount: Tensor
    """(P, B, 1)."""
    following: Tensor
    """(P, B, G)."""
    scale: float
    """The weight of one error; with `in_use`, divided by how many of the member's are in use."""
    in_use: Tensor | None
    """Ones and zeros (P, B, G); what is not in use has nothing to learn."""
    huber: bool
    """Whether the loss is Huber's, or the squared error."""

    def slope(self) -> Tensor:
        """The slope of the members' losses by the predictions, (P, B, G)."""
        if self.predicted.device.type == "cuda":
            return self._kernel()
        # The slope of the squared error is twice the error; Huber's never exceeds one.
        slope = self.error.clamp(-1.0, 1.0) if self.huber else 2.0 * self.error
        return slope * self.weight

    @cached_property
    def error(self) -> Tensor:
        """Predictions minus targets."""
        return self.predicted - torch.addcmul(self.reward, self.discount, self.following)

    @cached_property
    def weight(self) -> Tensor | float:
        """What each error counts."""
        if self.in_use is None:
            return self.scale
        count = member_sum(self.in_use).clamp_min(1.0)
        return self.in_use * (self.scale / along(count, self.in_use))

    def metrics(self) -> Metrics:
        """The loss, how far off predictions are, and what they are."""
        size = self.error.abs()
        if self.huber:
            loss = torch.where(size < 1.0, 0.5 * size**2, size - 0.5)
        else:
            loss = self.error.square()
        return {
            "train/loss": member_sum(loss * self.weight),
            "train/td_error": member_mean(size),
            "train/q_values": member_mean(self.predicted),
        }

    def _kernel(self) -> Tensor:
        """The slope as one kernel."""
        from headwise.algorithms.kernels.dqn import slope

        predicted = self.predicted.contiguous()
        members, rows, columns = predicted.shape
        reward, following = (x.expand_as(predicted) for x in (self.reward, self.following))
        out = torch.empty_like(predicted)
        slope[(members, -(-rows * columns // _BLOCK))](
            predicted, reward, self.discount, following,
            predicted if self.in_use is None else self.in_use.contiguous(), out, float(self.scale),
            *reward.stride(), *self.discount.stride()[:2], *following.stride(),
            rows * columns, columns,
            IN_USE=self.in_use is not None, HUBER=self.huber, BLOCK=_BLOCK,
        )  # fmt: skip
        return out
