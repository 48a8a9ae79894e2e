"""SAC whose options are drawn by the critic and numbers by an actor: what BDQ and chain share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor

from headwise.factorizations.base import Blueprint
from headwise.factorizations.soft import ActorLoss, part_layout, temperatures_of
from headwise.population import Initializer, member_mean


class OptionsSoft(ABC):
    """Numbers first, from an actor; then options, from the critic's advantages given the numbers.

    Args:
        blueprint: Sizes and first values.
        make_actor: Makes the actor of the Range heads from a blueprint of them alone.
    """

    num_columns = 1
    actor_has_options = False

    def __init__(self, blueprint: Blueprint, make_actor: Callable[[Blueprint], Any]) -> None:
        self.layout = blueprint.layout
        self._blueprint = blueprint
        self.actor: Any = None
        self.num_uniforms = self.layout.num_choices
        if self.layout.num_ranges:
            ranges = part_layout(self.layout, self.layout.ranges)
            self.actor = make_actor(replace(blueprint, layout=ranges))
            self.num_uniforms += self.actor.num_uniforms
        self.num_noise = self.num_uniforms

    def soft_value(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """The value of states with the entropy to come, (P, B, 1)."""
        numbers, log_prob = self._draw_numbers(obs, uniform)
        value, _, in_use = self._over_options(critic, obs, numbers, uniform, alpha, legal)
        if log_prob is not None:
            t = temperatures_of(alpha, self.layout.ranges)
            value = value - (t * self._of_ranges(log_prob, in_use)).sum(-1, keepdim=True)
        return value

    def actor_loss(
        self,
        critic: Any,
        obs: Tensor,
        noise: Tensor,
        alpha: Tensor,
        gumbel_temperature: Tensor,
        legal: Tensor | None,
    ) -> ActorLoss:
        """Minus the soft value by the numbers chosen; without Ranges there is no actor."""
        numbers, log_prob = self._draw_numbers(obs, noise)
        value, entropy, in_use = self._over_options(critic, obs, numbers, noise, alpha, legal)
        if log_prob is None:
            return ActorLoss(None, self.layout.columns(entropy, None), in_use)
        log_prob = self._of_ranges(log_prob, in_use)
        t = temperatures_of(alpha, self.layout.ranges)
        gain = value - (t * log_prob).sum(-1, keepdim=True)
        return ActorLoss(-member_mean(gain), self.layout.columns(entropy, -log_prob), in_use)

    @abstractmethod
    def _over_options(
        self,
        critic: Any,
        obs: Tensor,
        numbers: Tensor | None,
        uniform: Tensor,
        alpha: Tensor,
        legal: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The soft value over discrete heads (P, B, 1), and their entropies (P, B, D).

        The third is how likely each head is to be in use, (P, B, H), where not all always are.
        """

    def _critic_blueprint(self) -> tuple[Blueprint, int]:
        """What critics are built from, the same at every call, and how many inputs they have."""
        own = replace(self._blueprint, init=Initializer(self._blueprint.init.keys, 1000))
        return own, self._blueprint.obs_size + self.layout.num_ranges

    def _best_numbers(self, obs: Tensor) -> Tensor | None:
        return None if self.actor is None else self.actor.to_unit(self.actor.mode(obs))

    def _draw_numbers(self, obs: Tensor, uniform: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Values of the Range heads (P, B, C) from the actor, and their log-densities."""
        if self.actor is None:
            return None, None
        raw, judged = self.actor.sample(obs, uniform[..., self.layout.num_choices :])
        return self.actor.to_unit(raw), judged.log_prob

    def _of_ranges(self, log_prob: Tensor, in_use: Tensor | None) -> Tensor:
        """Log-densities (P, B, C), weighted with how likely their heads are to be in use."""
        return log_prob if in_use is None else log_prob * in_use[..., self.layout.ranges]
