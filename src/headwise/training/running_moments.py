"""Running mean and variance of a stream of vectors, for each member by itself."""

from __future__ import annotations

import torch
from torch import Tensor


class RunningMoments:
    """Mean and variance over all rows seen so far, in float64, for every member and feature.

    Batches are merged by the rule of Chan, Golub and LeVeque, so that nothing is lost to rounding
    however long the stream. No number of one member ever depends on another. Before any data the
    mean is 0.

    Args:
        num_members: Members (P).
        size: Features (O).
        device: Where the rows are.
    """

    def __init__(self, num_members: int, size: int, device: torch.device | str = "cpu") -> None:
        shape = (num_members, size)
        self.mean = torch.zeros(shape, dtype=torch.float64, device=device)
        """(P, O)."""
        self._count = torch.zeros((num_members, 1), dtype=torch.float64, device=device)
        self._squares = torch.zeros(shape, dtype=torch.float64, device=device)

    @property
    def variance(self) -> Tensor:
        """Of the rows seen, (P, O); 1 where all were equal, so that dividing by it is harmless."""
        return torch.where(self._squares > 0.0, self._squares / self._count.clamp_min(1.0), 1.0)

    def update(self, rows: Tensor, counts: Tensor | None = None) -> None:
        """Takes in rows (P, B, O); where `counts` (P, B) is False, a row is left out."""
        # The rows of one member and feature side by side: their sum is then the same for every P.
        rows_POB = rows.to(torch.float64).transpose(-1, -2).contiguous()
        weight_P1B = torch.ones_like(rows_POB[..., :1, :])
        if counts is not None:
            weight_P1B = weight_P1B * counts.unsqueeze(-2)
        number = weight_P1B.sum(-1)
        mean = (rows_POB * weight_P1B).sum(-1) / number.clamp_min(1.0)
        squares = ((rows_POB - mean.unsqueeze(-1)).square() * weight_P1B).sum(-1)
        delta = mean - self.mean
        total = (self._count + number).clamp_min(1.0)
        self._squares.add_(squares + delta.square() * (self._count * number / total))
        self.mean.add_(delta * (number / total))
        self._count.add_(number)

    def state_dict(self) -> dict[str, Tensor]:
        """All numbers, each with the member axis first."""
        return {
            "mean": self.mean.clone(),
            "count": self._count.clone(),
            "squares": self._squares.clone(),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        self.mean.copy_(state["mean"])
        self._count.copy_(state["count"])
        self._squares.copy_(state["squares"])
