"""SAC over joint actions: SAC-BDQ with one head of all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from headwise.factorizations.base import Blueprint
from headwise.factorizations.parts.joint_actions import JointActions
from headwise.factorizations.soft.base import ActorLoss
from headwise.factorizations.soft.branching import BranchingCritics, BranchingSoft


class JointSoft:
    """Discrete SAC whose only head is the joint action; its temperature is that of all heads."""

    num_columns = 1
    num_uniforms = 1
    num_noise = 1
    actor_has_options = False
    tells_heads_apart = False
    actor: Any = None

    def __init__(self, blueprint: Blueprint) -> None:
        self._actions = JointActions(blueprint.layout)
        self._inner = BranchingSoft(replace(blueprint, layout=self._actions.layout))
        self._outer = blueprint.layout
        sizes = torch.tensor(blueprint.spec.cardinalities, device=blueprint.layout.device).log()
        # Every head has the same share of its own largest entropy that the joint action has of
        # theirs together, so that it is the same whose target is looked at.
        self._share = sizes / sizes.sum(-1).clamp_min(1e-6)

    def make_critic(self) -> BranchingCritics:
        """Twin critics."""
        return self._inner.make_critic()

    def largest_entropy(self, legal: Tensor | None) -> Tensor:
        """Each head's share of the logarithm of how many joint actions there are to choose from.

        Where heads may be idle those are fewer than combinations of options.
        """
        allowed = self._actions.legal(legal)
        if allowed is None:
            return self._outer.largest_entropy()
        together = allowed.sum(-1).clamp_min(1).log() * self._share  # (..., 1) to (..., H)
        return together if legal is not None else together.view(-1)

    def sample(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Joint actions drawn from the first critic's softmax, as options."""
        allowed = self._actions.legal(legal)
        return self._actions.to_heads(
            self._inner.sample(critic, obs, uniform, alpha[..., :1], allowed)
        )

    def mode(self, critic: Any, obs: Tensor, legal: Tensor | None) -> Tensor:
        """The first critic's best joint action, as options."""
        return self._actions.to_heads(self._inner.mode(critic, obs, self._actions.legal(legal)))

    def predict(
        self, critic: Any, obs: Tensor, action: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """Both critics' values of given actions, (P, 2, B, 1)."""
        allowed = self._actions.legal(legal)
        return self._inner.predict(critic, obs, self._actions.to_joint(action), allowed)

    def soft_value(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """The value of states with the entropy to come, (P, B, 1)."""
        allowed = self._actions.legal(legal)
        return self._inner.soft_value(critic, obs, uniform, alpha[..., :1], allowed)

    def actor_loss(
        self,
        critic: Any,
        obs: Tensor,
        noise: Tensor,
        alpha: Tensor,
        gumbel_temperature: Tensor,
        legal: Tensor | None,
    ) -> ActorLoss:
        """No actor; the entropy of the joint action, shared out among the heads."""
        allowed = self._actions.legal(legal)
        entropy = self._inner.actor_loss(
            critic, obs, noise, alpha[..., :1], gumbel_temperature, allowed
        ).entropy
        return ActorLoss(None, entropy * self._share)
