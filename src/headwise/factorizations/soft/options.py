"""SAC whose options are drawn by the critic and numbers by an actor: what BDQ and chain share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor

from headwise.factorizations.base import Blueprint
from headwise.factorizations.soft.base import ActorLoss, for_critics, part_layout, temperatures_of
from headwise.factorizations.soft.draw import draw, draw_units


class OptionsSoft(ABC):
    """Numbers first, from an actor; then options, from the critic's advantages given the numbers.

    Args:
        blueprint: Sizes and first values.
        make_actor: Makes the actor of the Range heads from a blueprint of them alone.
    """

    num_columns = 1
    actor_has_options = False
    tells_heads_apart = True

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

    def largest_entropy(self, legal: Tensor | None) -> Tensor:
        """The most that each Choice's entropy can be, (H,) or (P, B, H)."""
        return self.layout.largest_entropy(legal)

    def soft_value(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """The value of states with the entropy to come, (P, B, 1)."""
        return self._soft(critic, obs, uniform, alpha, legal)[0]

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
        gain, entropy, in_use = self._soft(critic, obs, noise, alpha, legal)
        return ActorLoss(None if self.actor is None else gain, entropy, in_use)

    def _soft(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The soft value (P, B, 1), the heads' entropies (P, B, H), and how likely they are used.

        The third is (P, B, H), or None where all heads always are in use.
        """
        numbers, of_ranges = self._draw_judged(obs, uniform)
        value, entropy, in_use = self._over_options(critic, obs, numbers, uniform, alpha, legal)
        if of_ranges is not None:
            if in_use is not None:
                of_ranges = of_ranges * in_use[..., self.layout.ranges]
            t = temperatures_of(alpha, self.layout.ranges)
            value = value + (t * of_ranges).sum(-1, keepdim=True)
        return value, self.layout.columns(entropy, of_ranges), in_use

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
        own = for_critics(self._blueprint)
        return own, own.obs_size + self.layout.num_ranges

    def _best_numbers(self, obs: Tensor) -> Tensor | None:
        return None if self.actor is None else self.actor.to_unit(self.actor.mode(obs))

    def _draw_numbers(self, obs: Tensor, uniform: Tensor) -> Tensor | None:
        """Values of the Range heads (P, B, C) from the actor."""
        if self.actor is None:
            return None
        return draw_units(self.actor, obs, uniform[..., self.layout.num_choices :])

    def _draw_judged(self, obs: Tensor, uniform: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """What `_draw_numbers` gives, and minus their log-densities."""
        if self.actor is None:
            return None, None
        drawn = draw(self.actor, obs, uniform[..., self.layout.num_choices :])
        return drawn.unit, drawn.entropy
