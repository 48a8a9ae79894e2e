"""Independent SAC: a discrete SAC for every Choice and a scalar SAC for every Range."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.heads import chosen, pick_options
from headwise.factorizations.soft import (
    TWINS,
    ActorLoss,
    log_sum,
    part_layout,
    temperatures_of,
)
from headwise.factorizations.stacks import PolicyStack, for_each_head
from headwise.factorizations.values import max_centred
from headwise.factorizations.worth import lesser
from headwise.nets import MLP, Dueling
from headwise.population import Initializer, Linear


class IndependentCritics(nn.Module):
    """For each Choice V_h(s) and A_h(s, .), for each Range Q_h(s, a_h), all twice."""

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__()
        layout = blueprint.layout
        gain = 2.0**0.5 if blueprint.orthogonal else None
        if layout.num_choices:
            self.options = Dueling(
                blueprint.init,
                blueprint.obs_size,
                layout.max_options,
                blueprint.hidden,
                blueprint.branch_width,
                blueprint.activation,
                copies=(TWINS, layout.num_choices),
                orthogonal=blueprint.orthogonal,
            )
        if layout.num_ranges:
            copies = (TWINS, layout.num_ranges)
            self.encoder = MLP(
                blueprint.init,
                blueprint.obs_size + 1,
                blueprint.hidden,
                blueprint.activation,
                copies=copies,
                gain=gain,
            )
            self.output = Linear(blueprint.init, self.encoder.out_features, 1, copies=copies)


class IndependentSoft:
    """H learners that share nothing but the reward: predictions and values are (..., H)."""

    actor_has_options = False

    def __init__(self, blueprint: Blueprint) -> None:
        self.layout = blueprint.layout
        self._blueprint = blueprint
        self.num_columns = self.layout.num_heads
        self.actor: Any = None
        range_uniforms = 0
        if self.layout.num_ranges:
            ranges = part_layout(self.layout, self.layout.ranges)
            self.actor = PolicyStack(replace(blueprint, layout=ranges), blueprint.obs_size)
            range_uniforms = self.actor.num_uniforms
        self.num_uniforms = self.layout.num_choices + range_uniforms
        self.num_noise = self.num_uniforms

    def make_critic(self) -> IndependentCritics:
        """Twin critics for every head."""
        own = replace(self._blueprint, init=Initializer(self._blueprint.init.keys, 1000))
        return IndependentCritics(own)

    def sample(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Options from each first critic's softmax, numbers from each actor."""
        options = None
        if self.layout.num_choices:
            _, advantage = self._branches(critic, obs, legal)
            log_policy = torch.log_softmax(advantage / self._t(alpha).unsqueeze(-1), dim=-1)
            shares = uniform[..., : self.layout.num_choices]
            options = pick_options(log_policy.select(-4, 0), shares)
        numbers, _ = self._draw_numbers(obs, uniform)
        return self.layout.columns(options, numbers)

    def mode(self, critic: Any, obs: Tensor, legal: Tensor | None) -> Tensor:
        """Each first critic's best option, each actor's mode."""
        options = numbers = None
        if self.layout.num_choices:
            _, advantage = self._branches(critic, obs, legal)
            options = advantage.select(-4, 0).argmax(-1).float()
        if self.actor is not None:
            heads = self.actor.heads(for_each_head(obs, self.layout.num_ranges))
            numbers = self.actor.spread.to_unit(self.actor.layout, heads.mode())
        return self.layout.columns(options, numbers)

    def predict(
        self, critic: Any, obs: Tensor, action: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """Both critics of every head, (P, 2, B, H)."""
        options = numbers = None
        if self.layout.num_choices:
            value, advantage = self._branches(critic, obs, legal)
            picks = self.layout.choice_columns(action).unsqueeze(-3).expand_as(value)
            options = value + chosen(advantage, picks)
        if self.layout.num_ranges:
            numbers = self._judge_numbers(critic, obs, self.layout.range_columns(action))
        return self.layout.columns(options, numbers)

    def soft_value(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Every head's own value of the state, (P, B, H)."""
        options = reals = None
        if self.layout.num_choices:
            options, _, _ = self._over_options(critic, obs, alpha, legal)
        numbers, log_prob = self._draw_numbers(obs, uniform)
        if numbers is not None and log_prob is not None:
            t = temperatures_of(alpha, self.layout.ranges)
            reals = lesser(self._judge_numbers(critic, obs, numbers)) - t * log_prob
        return self.layout.columns(options, reals)

    def actor_loss(
        self,
        critic: Any,
        obs: Tensor,
        noise: Tensor,
        alpha: Tensor,
        gumbel_temperature: Tensor,
        legal: Tensor | None,
    ) -> ActorLoss:
        """Every actor by its own critic."""
        options = reals = gain = in_use = None
        if self.layout.num_choices:
            _, options, in_use = self._over_options(critic, obs, alpha, legal)
        numbers, log_prob = self._draw_numbers(obs, noise)
        if numbers is not None and log_prob is not None:
            t = temperatures_of(alpha, self.layout.ranges)
            gain = lesser(self._judge_numbers(critic, obs, numbers)) - t * log_prob
            if in_use is not None:  # an actor learns as much as its head is in use
                used = in_use[..., self.layout.ranges].detach()
                gain, log_prob = gain * used, log_prob * used
            reals = -log_prob
        return ActorLoss(gain, self.layout.columns(options, reals), in_use)

    # --- the pieces -----------------------------------------------------------------------------

    def _branches(self, critic: Any, obs: Tensor, legal: Tensor | None) -> tuple[Tensor, Tensor]:
        """V (P, 2, B, D) and max-centred A (P, 2, B, D, K) of the Choice heads."""
        value, advantage = critic.options(_twice_each(for_each_head(obs, self.layout.num_choices)))
        allowed = None if legal is None else legal.unsqueeze(-4)
        centred = max_centred(self.layout, advantage.movedim(-3, -2), allowed)
        return value.transpose(-1, -2), centred

    def _over_options(
        self, critic: Any, obs: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Each Choice head's soft value (P, B, D), and its entropy under the first critic.

        The third is how likely each head is to be in use, (P, B, H), where not all always are.
        """
        value, advantage = self._branches(critic, obs, legal)
        t = self._t(alpha)
        scaled = advantage / t.unsqueeze(-1)
        of_both = torch.log_softmax(scaled, dim=-1)
        log_policy = of_both.select(-4, 0)
        entropy = -(log_policy.exp() * log_policy).sum(-1)
        in_use = self.layout.activity(log_policy)
        if in_use is not None:
            entropy = entropy * in_use[..., self.layout.choices]
        return lesser(value + t * log_sum(of_both)), entropy, in_use

    def _judge_numbers(self, critic: Any, obs: Tensor, numbers: Tensor) -> Tensor:
        """Both critics of every Range head, (P, 2, B, C)."""
        own = numbers.transpose(-1, -2).unsqueeze(-1)  # (P, C, B, 1)
        x = torch.cat([for_each_head(obs, self.layout.num_ranges), own], dim=-1)
        values: Tensor = critic.output(critic.encoder(_twice_each(x))).squeeze(-1)
        return values.transpose(-1, -2)

    def _draw_numbers(self, obs: Tensor, uniform: Tensor) -> tuple[Tensor | None, Tensor | None]:
        if self.actor is None:
            return None, None
        heads = self.actor.heads(for_each_head(obs, self.layout.num_ranges))
        raw, log_prob = heads.sample(uniform[..., self.layout.num_choices :])
        return self.actor.spread.to_unit(self.actor.layout, raw), log_prob

    def _t(self, alpha: Tensor) -> Tensor:
        """Temperatures of the Choice heads, shaped to go with (P, 2, B, D)."""
        return temperatures_of(alpha, self.layout.choices).unsqueeze(-3)


def _twice_each(x: Tensor) -> Tensor:
    """Inputs (..., H, B, F) for both critics of every head, (..., 2, H, B, F)."""
    return x.unsqueeze(-4).expand(*x.shape[:-3], TWINS, *x.shape[-3:])
