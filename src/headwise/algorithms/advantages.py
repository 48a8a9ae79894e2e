"""From a rollout and a critic's values to advantages and targets."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from headwise.algorithms.base import RolloutBatch
from headwise.algorithms.returns import gae, td_target
from headwise.population import along, member_mean


class Estimate(NamedTuple):
    """What policy and critic learn from, (P, T, E, ...)."""

    advantage: Tensor
    """For each head where a branching critic shares out credit, else one (or one per value)."""
    plain: Tensor
    """The advantage before credit is shared out."""
    target: Tensor
    """What the critic is regressed on."""
    value: Tensor
    """The critic's value when the rollout was made."""


def estimate_advantages(
    batch: RolloutBatch,
    value: Tensor,
    next_value: Tensor,
    *,
    gamma: Tensor,
    gae_lambda: Tensor,
    weights: Tensor | None = None,
    weight_place: Literal["inside", "outside"] = "inside",
    critic_target: Literal["lambda", "one_step"] = "lambda",
    normalise: bool = True,
) -> Estimate:
    """Advantages of a rollout.

    Args:
        batch: The rollout.
        value: V of the observations, (P, T, E, G).
        next_value: V of the true successors.
        gamma: Discount of each member, (P,).
        gae_lambda: Trace decay of each member, (P,).
        weights: Each head's share of the credit, (P, T, E, H).
        weight_place: Whether weights apply to every residual of the trace or to its sum.
        critic_target: The lambda-return, or one step and the next value.
        normalise: Whether to bring advantages to mean 0 and deviation 1, all heads together.
    """
    reward = batch.reward.unsqueeze(-1)
    terminated, truncated = batch.terminated.unsqueeze(-1), batch.truncated.unsqueeze(-1)
    gamma, decay = along(gamma, value), along(gae_lambda, value)

    def trace(weight: Tensor | None) -> Tensor:
        return gae(reward, value, next_value, terminated, truncated, gamma, decay, weight)

    plain = trace(None)
    advantage = plain
    if weights is not None:
        advantage = trace(weights) if weight_place == "inside" else weights * plain
    target = value + plain
    if critic_target == "one_step":
        target = td_target(reward, next_value, terminated, gamma)
    if normalise:
        valid = batch.valid.unsqueeze(-1)
        plain, advantage = standardised(plain, valid), standardised(advantage, valid)
    return Estimate(advantage, plain, target, value)


def standardised(x: Tensor, valid: Tensor) -> Tensor:
    """Brought to mean 0 and deviation 1 within each member, over what is valid."""
    mean = along(member_mean(x, valid), x)
    deviation = along(member_mean((x - mean).square(), valid), x).sqrt()
    return (x - mean) / (deviation + torch.finfo(x.dtype).eps)
