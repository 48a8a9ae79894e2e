"""SAC-Concat: an actor over all heads, and critics that see the whole action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.heads import Heads
from headwise.factorizations.prefix import Prefix
from headwise.factorizations.soft import (
    TWINS,
    ActorLoss,
    lesser,
    straight_through,
    twice,
)
from headwise.nets import MLP
from headwise.population import Initializer, Linear, member_mean


class ActionCritic(nn.Module):
    """Q(s, a) for an embedded action, twice: (P, 2, B, F) to (P, 2, B, 1)."""

    def __init__(self, blueprint: Blueprint, in_features: int) -> None:
        super().__init__()
        gain = 2.0**0.5 if blueprint.orthogonal else None
        self.encoder = MLP(
            blueprint.init,
            in_features,
            blueprint.hidden,
            blueprint.activation,
            copies=(TWINS,),
            gain=gain,
        )
        self.output = Linear(blueprint.init, self.encoder.out_features, 1, copies=(TWINS,))

    def forward(self, x: Tensor) -> Tensor:
        """The values of both critics."""
        value: Tensor = self.output(self.encoder(x))
        return value


class ConcatSoft:
    """One value of the whole action, and an actor that learns its options from it.

    `straight_through` relaxes options and follows the critics' slope at the action drawn: one
    evaluation, but biased. `counterfactual` asks the critics for every option of a head, the other
    heads as drawn: unbiased, for as many evaluations as there are options.
    """

    num_columns = 1

    def __init__(self, blueprint: Blueprint, make_actor: Callable[[Blueprint], Any]) -> None:
        self.layout = blueprint.layout
        self._blueprint = blueprint
        self._embedding = Prefix(self.layout)
        self.actor: Any = make_actor(blueprint)
        self.num_uniforms: int = self.actor.num_uniforms
        self.actor_has_options = self.layout.num_choices > 0
        self._counterfactual = blueprint.actor_gradient == "counterfactual"
        relaxed = 0 if self._counterfactual else self.layout.num_choices
        self._num_gumbel = relaxed * self.layout.max_options
        self.num_noise = self._num_gumbel + self.num_uniforms

    def make_critic(self) -> ActionCritic:
        """Twin critics."""
        own = replace(self._blueprint, init=Initializer(self._blueprint.init.keys, 1000))
        return ActionCritic(own, self._blueprint.obs_size + self._embedding.size)

    def sample(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Actions drawn from the actor."""
        raw, _ = self.actor.sample(obs, uniform, legal)
        unit: Tensor = self.actor.to_unit(raw)
        return unit

    def mode(self, critic: Any, obs: Tensor, legal: Tensor | None) -> Tensor:
        """The actor's mode."""
        unit: Tensor = self.actor.to_unit(self.actor.mode(obs, legal))
        return unit

    def predict(
        self, critic: Any, obs: Tensor, action: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """Both critics' values of given actions, (P, 2, B, 1)."""
        value: Tensor = critic(twice(torch.cat([obs, self._embedding.embed(action)], dim=-1)))
        return value

    def soft_value(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Min Q of an action drawn, plus what its randomness is worth."""
        raw, judged = self.actor.sample(obs, uniform, legal)
        value = lesser(self.predict(critic, obs, self.actor.to_unit(raw)))
        entropy = self._entropy(judged.heads, judged.log_prob)
        return value + (alpha.unsqueeze(-2) * entropy).sum(-1, keepdim=True)

    def actor_loss(
        self,
        critic: Any,
        obs: Tensor,
        noise: Tensor,
        alpha: Tensor,
        gumbel_temperature: Tensor,
        legal: Tensor | None,
    ) -> ActorLoss:
        """Minus the value of what the actor does and of its randomness."""
        raw, judged = self.actor.sample(obs, noise[..., self._num_gumbel :], legal)
        heads, unit = judged.heads, self.actor.to_unit(raw)
        if heads.log_probs is None:
            value = lesser(self.predict(critic, obs, unit))
        elif self._counterfactual:
            value = self._expected(critic, obs, unit, heads.log_probs)
        else:
            gumbel = noise[..., : self._num_gumbel].reshape(heads.log_probs.shape)
            options = straight_through(heads.log_probs, gumbel, gumbel_temperature)
            embedded = self._embedding.embed_relaxed(options, unit)
            value = lesser(critic(twice(torch.cat([obs, embedded], dim=-1))))
        entropy = self._entropy(heads, judged.log_prob)
        gain = value + (alpha.unsqueeze(-2) * entropy).sum(-1, keepdim=True)
        return ActorLoss(-member_mean(gain), entropy, heads.activity())

    def _expected(self, critic: Any, obs: Tensor, unit: Tensor, log_probs: Tensor) -> Tensor:
        """What each Choice head may expect while the other heads are as drawn, summed, (P, B, 1).

        Its gradient by the actor is that of the expected value, on average over draws. Numbers of
        Range heads have theirs through the critics at the action drawn.
        """
        with torch.no_grad():
            actions = self.layout.each_option(unit)
            states = obs.unsqueeze(-2).expand(*actions.shape[:-1], obs.shape[-1])
            q = lesser(self.predict(critic, states.flatten(-3, -2), actions.flatten(-3, -2)))
            q = self.layout.pad(q.view(actions.shape[:-1]))
        value = (log_probs.exp() * q).sum((-2, -1)).unsqueeze(-1)
        if self.layout.num_ranges:
            value = value + lesser(self.predict(critic, obs, unit))
        return value

    def _entropy(self, heads: Heads, log_prob: Tensor) -> Tensor:
        """Of each head: exact for a Choice, minus the log-density drawn for a Range."""
        if heads.log_probs is None:
            return -log_prob
        if heads.ranges is None:
            return heads.entropy()
        if self.layout.is_conditional:
            return torch.where(self.layout.is_choice, heads.entropy(), -log_prob)
        of_ranges = -self.layout.range_columns(log_prob)
        return self.layout.columns(heads.option_entropy(), of_ranges)
