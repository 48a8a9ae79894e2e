"""The critic's side of the loss of PPO: how wrong its values are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headwise.algorithms.losses.squared_error import squared_error
from headwise.algorithms.returns import td_target
from headwise.errors import ConfigError
from headwise.factorizations.base import Branching, Critic, Judged, Policy
from headwise.population import along, member_mean

if TYPE_CHECKING:
    from headwise.algorithms.ppo import PPO


class ValueLoss:
    """The squared error of a plain critic's values, or of a branching critic's values of actions.

    Args:
        config: The settings.
        actor: The policy.
        critic: What learns.
        factorization: The name of the factorization that they are of.
        gamma: The discount, (P,).
    """

    def __init__(
        self, config: PPO, actor: Policy, critic: Critic, factorization: str, gamma: Tensor
    ) -> None:
        self.config = config
        self.actor = actor
        self.critic = critic
        self.branching = critic if isinstance(critic, Branching) else None
        """The critic, where it tells heads apart."""
        self.gamma = gamma
        if self.branching is not None and config.value_clip is not None:
            raise ConfigError(
                f"value_clip holds the value of states near the old one, and the critic of "
                f"{factorization!r} learns by the value of actions",
                got=f"value_clip={config.value_clip}",
                allowed="None",
                fix="Leave value_clip out, or use a factorization without a branching critic.",
            )

    def __call__(self, part: dict[str, Tensor], judged: Judged, share: Tensor) -> Tensor:
        """The loss of a minibatch, (P,), of whose rows each counts its share, (P, B, 1)."""
        if "past_obs" in part:
            return self._of_the_past(part)
        target = part["target"]
        if self.branching is not None:
            masses = part.get("masses")
            if masses is None:
                masses = self.branching.masses(judged.heads.detached())
            predicted = self.branching.predict(part["obs"], part["bins"], masses)
            return squared_error(predicted, target, share)
        predicted = self.critic.value(part["obs"])
        loss = squared_error(predicted, target, share)
        if self.config.value_clip is not None:
            change = (predicted - part["value"]).clamp(
                -self.config.value_clip, self.config.value_clip
            )
            held = squared_error(part["value"] + change, target, share)
            loss = torch.maximum(loss, held)
        return loss

    def _of_the_past(self, part: dict[str, Tensor]) -> Tensor:
        """The branching critic on rows of the past, one step and the next value as target."""
        critic = self.branching
        assert critic is not None, "only such a critic learns of the past"
        obs, following = part["past_obs"], part["past_next_obs"]
        with torch.no_grad():
            # Centred under the current policy, whatever the policy was that acted then.
            heads = self.actor.judge(obs, part["past_raw"], part.get("past_legal")).heads
            masses = critic.masses(heads)
            value = critic.value(following)
            if self.config.correct_mixture:
                judged = self.actor.judge(following, part["past_raw"], part.get("past_next_legal"))
                chances = critic.masses(judged.heads)
                value = value + critic.expected_mixture(following, chances).unsqueeze(-1)
            gamma = along(self.gamma, part["past_reward"])
            target = td_target(part["past_reward"], value, part["past_terminated"], gamma)
        predicted = critic.predict(obs, part["past_bins"], masses)
        return member_mean((predicted - target).square(), part["past_valid"])
