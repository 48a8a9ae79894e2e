"""What the tests of theory share: weights and estimates of the library, on numbers by hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from by_hand import result, rows, ticks

from headwise.algorithms.ppo.credit import credit_weights
from headwise.ops import gae


def weights(importance: Sequence[float], alpha: float = 1.0) -> np.ndarray:
    """Equation 5, as the library has it: shares of the credit by importance."""
    clock = ticks(round(1000 * alpha))
    settings = {"span": 1000.0, "floor": 0.0}
    return result(credit_weights, rows(importance), clock, None, **settings).flatten().numpy()


def estimates(
    delta: Sequence[float], shares: Sequence[Sequence[float]] | None, decay: float
) -> np.ndarray:
    """Equation 6: residuals (T,) and shares (T, H) to advantages (T, H); (T, 1) without shares."""

    def column(x: object) -> torch.Tensor:
        made = torch.tensor(x, dtype=torch.float64)
        return made.view(1, 1, len(delta), -1)

    zeros = column([0.0] * len(delta))
    given = None if shares is None else column(shares)
    settings = [torch.full((1, 1, 1, 1), x, dtype=torch.float64) for x in (1.0, decay)]
    found = gae.definition(column(delta), zeros, zeros, zeros, zeros, given, *settings, num_envs=1)
    return found[0, 0].numpy()


def cosine(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The cosine of the angle between two vectors."""
    a, b = np.asarray(ours), np.asarray(theirs)
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))
