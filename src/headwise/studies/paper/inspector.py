"""What is looked at in the ContextualDecoupler, where the right credit is known."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.algorithms.inspect import inspectors


@inspectors.register("decoupler")
def decoupler(rows: dict[str, Tensor]) -> dict[str, Tensor]:
    """Credit in ContextualDecoupler, whose first observation says which of two heads is active.

    `credit/variance_ratio` is the variance of the inactive head's advantage over the active one's;
    `credit/weight_ratio` is what a law of squared weights would make of it: the mean square of the
    inactive head's weights over that of the active one's. `credit/correlation` and
    `credit/accuracy` tell how well the weights find the active head.
    """
    context = rows["obs"][..., 0].long()
    active = torch.nn.functional.one_hot(context, 2).bool()
    if rows["advantage"].shape[-1] < 2 or "weight" not in rows:
        return {}

    def variance(x: Tensor, which: Tensor) -> Tensor:
        count = which.sum((-1, -2)).clamp_min(1)
        mean = (x * which).sum((-1, -2)) / count
        return ((x - mean[..., None, None]).square() * which).sum((-1, -2)) / count

    advantage, weight = rows["advantage"], rows["weight"]
    truth = active.float() - 0.5
    centered = weight - 0.5  # two weights that sum to one: their mean is one half
    correlation = (truth * centered).mean((-1, -2)) / (
        truth.square().mean((-1, -2)) * centered.square().mean((-1, -2)).clamp_min(1e-12)
    ).sqrt()
    return {
        "credit/variance_ratio": variance(advantage, ~active) / variance(advantage, active),
        "credit/weight_ratio": (weight.square() * ~active).sum((-1, -2))
        / (weight.square() * active).sum((-1, -2)),
        "credit/correlation": correlation,
        "credit/accuracy": (weight.argmax(-1) == context).float().mean(-1),
    }
