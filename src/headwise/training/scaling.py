"""Observations of a common size, by moments that stand still between fixed points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headwise.spaces import ObsPrior

EPSILON = 1e-8
UNKNOWN_ROWS = 10.0
"""Rows that the prior std of 1 of unbounded values counts as; their mean counts as none."""


class Scaling:
    """Mean and standard deviation of each member's observations, up to the last `advance`.

    What is seen since is added up aside, as sums of distances from the mean in use, so that nothing
    is lost to a large offset. All is done in place, without waiting for the device, and no number
    of one member ever depends on another.

    Args:
        num_members: Members (P).
        size: The size of an observation (O).
        device: Where observations are.
        prior: What is known of observations beforehand; None treats all numbers alike, with mean 0
            and standard deviation 1 till something is seen, and 1 for what never changes.
        packed: The words that are no numbers, and stay as they are to the bit.
    """

    def __init__(
        self,
        num_members: int,
        size: int,
        device: torch.device,
        prior: ObsPrior | None = None,
        packed: Sequence[slice] = (),
    ) -> None:
        def zeros(columns: int) -> Tensor:
            return torch.zeros((num_members, columns), dtype=torch.float64, device=device)

        self._columns: Tensor | None = None  # those that are learned; None is all
        own = np.ones(size, dtype=np.bool_) if prior is None else prior.learned.copy()
        for words in packed:
            own[words] = False
        learned = int(own.sum())
        if learned < size:
            self._columns = torch.from_numpy(own.nonzero()[0]).to(device)
        self._mean, self._count, self._squares = (zeros(learned) for _ in range(3))
        self._fresh_count = zeros(1)
        self._fresh_sum, self._fresh_squares, self._more = (zeros(learned) for _ in range(3))
        # Where nothing is learned numbers are divided by a constant, and float32 will do.
        kind = torch.float64 if learned else torch.float32
        self.mean = torch.zeros((num_members, size), dtype=kind, device=device)
        """What is subtracted, (P, O)."""
        self.std = torch.ones((num_members, size), dtype=kind, device=device)
        """What is then divided by, (P, O)."""
        if prior is not None:
            rows = prior.rows[own]
            self.std.copy_(torch.from_numpy(prior.std))
            self._mean.copy_(torch.from_numpy(prior.mean[own]))
            self._count.copy_(torch.from_numpy(rows))
            self._squares.copy_(torch.from_numpy(prior.std[own] ** 2 * rows))
            self._more.copy_(torch.from_numpy(UNKNOWN_ROWS * (rows == 0.0)))
        self._use()

    def __call__(self, obs: Tensor, member: int | None = None, part: slice = slice(None)) -> Tensor:
        """Part of observations (P, ..., O), scaled; or of those of one member, (1, ..., O)."""
        obs, mean, std = (x[..., part] for x in (obs, self.mean, self.std))
        if member is not None:
            mean, std = mean[member : member + 1], std[member : member + 1]
        while mean.dim() < obs.dim():
            mean, std = mean.unsqueeze(-2), std.unsqueeze(-2)
        return (obs - mean) / std

    def take(self, obs: Tensor, valid: Tensor) -> None:
        """Adds up observations (P, B, O) for the next point; where not `valid`, none was acted on.

        The rows of one member and feature are side by side: their sum is then the same for every P.
        """
        if not self._mean.shape[-1]:
            return
        own = obs if self._columns is None else obs.index_select(-1, self._columns)
        rows_POB = own.to(torch.float64).transpose(-1, -2).contiguous()
        counts_PB = valid.to(torch.float64)
        off_POB = (rows_POB - self._mean.unsqueeze(-1)) * counts_PB.unsqueeze(-2)
        self._fresh_count.add_(counts_PB.sum(-1, keepdim=True))
        self._fresh_sum.add_(off_POB.sum(-1))
        self._fresh_squares.add_(off_POB.square_().sum(-1))

    def advance(self) -> None:
        """Counts what was added up, by the rule of Chan, Golub and LeVeque, and uses it."""
        number = self._fresh_count
        off = self._fresh_sum / number.clamp_min(1.0)
        squares = (self._fresh_squares - off * self._fresh_sum).clamp_min_(0.0)
        total = (self._count + number).clamp_min(1.0)
        self._squares.add_(squares + off.square() * (self._count * number / total))
        self._mean.add_(off * (number / total))
        self._count.add_(number)
        for fresh in (self._fresh_count, self._fresh_sum, self._fresh_squares):
            fresh.zero_()
        self._use()

    def state_dict(self) -> dict[str, Tensor]:
        """All numbers, each with the member axis first; nothing where nothing is learned."""
        return {n: x.clone() for n, x in self._numbers().items()} if self._mean.numel() else {}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        for name in self.state_dict():
            self._numbers()[name].copy_(state[name])
        self._use()

    def _numbers(self) -> dict[str, Tensor]:
        return {
            "mean": self._mean,
            "count": self._count,
            "squares": self._squares,
            "fresh_count": self._fresh_count,
            "fresh_sum": self._fresh_sum,
            "fresh_squares": self._fresh_squares,
        }

    def _use(self) -> None:
        """Puts the moments into use, in the same place."""
        more = self._more  # rows of standard deviation 1, wherever the mean is
        variance = (self._squares + more) / (self._count + more).clamp_min(1.0)
        std = (torch.where(variance > 0.0, variance, 1.0) + EPSILON).sqrt()
        columns = self._columns
        for used, learned in ((self.mean, self._mean), (self.std, std)):
            if columns is None:
                used.copy_(learned)
            else:
                used.index_copy_(-1, columns, learned.to(used.dtype))
