"""Independent SAC: a discrete SAC for every Choice and a scalar SAC for every Range."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.parts.heads import FEW, pick_options
from headwise.factorizations.parts.join import can_join, joined_each
from headwise.factorizations.parts.stacks import PolicyStack, for_each_head
from headwise.factorizations.parts.values import chosen_values, max_centred
from headwise.factorizations.soft.base import (
    TWINS,
    ActorLoss,
    for_critics,
    in_units_of,
    log_sum,
    part_layout,
    temperatures_of,
    twice,
)
from headwise.factorizations.soft.draw import draw_stack
from headwise.factorizations.soft.worth import (
    OfNetworks,
    can_branch,
    draw_branches,
    lesser,
    soft_each,
    worth_each,
)
from headwise.nets import MLP, Dueling
from headwise.population import Linear


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
    tells_heads_apart = True

    def __init__(self, blueprint: Blueprint) -> None:
        self.layout = blueprint.layout
        self._blueprint = blueprint
        self.num_columns = self.layout.num_heads
        self.actor: Any = None
        range_uniforms = 0
        if self.layout.num_ranges:
            # Each is a learner by itself, which does not ask whether it is in use.
            ranges = part_layout(self.layout, self.layout.ranges, conditional=False)
            self.actor = PolicyStack(replace(blueprint, layout=ranges), blueprint.obs_size)
            range_uniforms = self.actor.num_uniforms
        self.num_uniforms = self.layout.num_choices + range_uniforms
        self.num_noise = self.num_uniforms
        conditions = self.layout.spec.conditions  # of which some may be on what a number is
        self._numbers_decide = any(c and c.head in self.layout.range_of for c in conditions)

    def make_critic(self) -> IndependentCritics:
        """Twin critics for every head."""
        return IndependentCritics(for_critics(self._blueprint))

    def largest_entropy(self, legal: Tensor | None) -> Tensor:
        """The most that each Choice's entropy can be, (H,) or (P, B, H)."""
        return self.layout.largest_entropy(legal)

    def sample(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Options from each first critic's softmax, numbers from each actor."""
        options = None
        numbers, _ = self._draw_numbers(obs, uniform)
        if self.layout.num_choices:
            advantage = self._advantages(critic, obs)
            if self._is_plain(obs, legal):
                return draw_branches(self.layout, advantage, alpha, uniform, numbers, stacked=True)
            scaled = self._scaled(advantage, self._t(alpha), legal)
            log_policy = torch.log_softmax(scaled, dim=-1)
            shares = uniform[..., : self.layout.num_choices]
            options = pick_options(log_policy.select(-4, 0), shares)
        return self.layout.columns(options, numbers)

    def mode(self, critic: Any, obs: Tensor, legal: Tensor | None) -> Tensor:
        """Each first critic's best option, each actor's mode."""
        options = numbers = None
        if self.layout.num_choices:
            advantage = self._centred(self._advantages(critic, obs), legal)
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
            value, advantage = critic.options(self._for_options(obs))
            allowed = None if legal is None else legal.unsqueeze(-4)
            options = chosen_values(
                self.layout, value, advantage, twice(action), allowed, stacked=True, sums=False
            )
        if self.layout.num_ranges:
            judged = self._judge_numbers(critic, obs, self.layout.range_columns(action))
            numbers = judged.transpose(-1, -2)
        return self.layout.columns(options, numbers)

    def soft_value(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Every head's own value of the state, (P, B, H)."""
        numbers, of_ranges = self._draw_numbers(obs, uniform)
        value = advantage = judged = options = reals = None
        if self.layout.num_choices:
            value, advantage = critic.options(self._for_options(obs))
        if numbers is not None:
            judged = self._judge_numbers(critic, obs, numbers)
        if self._is_plain(obs, legal):
            said = OfNetworks(advantage, value, judged)
            return soft_each(self.layout, said, of_ranges, alpha, values=True)[0]
        if value is not None and advantage is not None:
            t = self._t(alpha)
            gains = t * log_sum(torch.log_softmax(self._scaled(advantage, t, legal), dim=-1))
            options = lesser(value.transpose(-1, -2) + gains)
        if judged is not None and of_ranges is not None:
            reals = worth_each(judged, of_ranges, alpha, self.layout.ranges)
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
        gain = advantage = of_options = log_policy = None
        if self.layout.num_choices:
            advantage = self._advantages(critic, obs)
        numbers, of_ranges = self._draw_numbers(obs, noise)
        if numbers is not None and of_ranges is not None:
            judged = self._judge_numbers(critic, obs, numbers)
            gain = worth_each(judged, of_ranges, alpha, self.layout.ranges)
        if self._is_plain(obs, legal):
            said = OfNetworks(advantage, None, None)
            return ActorLoss(gain, soft_each(self.layout, said, of_ranges, alpha, values=False)[1])
        if advantage is not None:
            log_policy = self._log_policy(advantage, alpha, legal)
            of_options = -(log_policy.exp() * log_policy).sum(-1)
        entropy = self.layout.columns(of_options, of_ranges)
        in_use = self._in_use(obs, log_policy)
        if in_use is None:
            return ActorLoss(gain, entropy)
        if gain is not None:  # an actor learns as much as it is used
            gain = gain * in_use[..., self.layout.ranges]
        return ActorLoss(gain, entropy * in_use, in_use)

    # --- the pieces -----------------------------------------------------------------------------

    def _for_options(self, obs: Tensor) -> Tensor:
        """The inputs of both critics of every Choice head, (P, 2, D, B, F)."""
        return _twice_each(for_each_head(obs, self.layout.num_choices))

    def _advantages(self, critic: Any, obs: Tensor) -> Tensor:
        """Raw A of the Choice heads, (P, 2, D, B, K)."""
        advantage: Tensor = critic.options.advantages_alone(self._for_options(obs))
        return advantage

    def _centred(self, advantage: Tensor, legal: Tensor | None) -> Tensor:
        """Max-centred A (P, 2, B, D, K)."""
        allowed = None if legal is None else legal.unsqueeze(-4)
        return max_centred(self.layout, advantage.movedim(-3, -2), allowed)

    def _scaled(self, advantage: Tensor, t: Tensor, legal: Tensor | None) -> Tensor:
        """Max-centred A by temperatures, (P, 2, B, D, K)."""
        allowed = None if legal is None else legal.unsqueeze(-4)
        return in_units_of(t, self.layout, self._centred(advantage, legal), allowed)

    def _log_policy(self, advantage: Tensor, alpha: Tensor, legal: Tensor | None) -> Tensor:
        """Log-probabilities of the options by the first critic, (P, B, D, K)."""
        scaled = self._scaled(advantage, self._t(alpha), legal)
        return torch.log_softmax(scaled.select(-4, 0), dim=-1)

    @torch.no_grad()
    def _in_use(self, obs: Tensor, log_policy: Tensor | None) -> Tensor | None:
        """How likely each head is to be in use, (P, B, H); None where all always are."""
        ranges = None
        if self._numbers_decide:
            ranges = self.actor.heads(for_each_head(obs, self.layout.num_ranges)).ranges
        return self.layout.activity(log_policy, ranges)

    def _judge_numbers(self, critic: Any, obs: Tensor, numbers: Tensor) -> Tensor:
        """Both critics of every Range head, (P, 2, C, B)."""
        if can_join(obs):
            x = joined_each(obs, numbers, TWINS)
        else:
            own = numbers.transpose(-1, -2).unsqueeze(-1)  # (P, C, B, 1)
            x = _twice_each(torch.cat([for_each_head(obs, self.layout.num_ranges), own], dim=-1))
        values: Tensor = critic.encoder(x, critic.output).squeeze(-1)
        return values

    def _draw_numbers(self, obs: Tensor, uniform: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Numbers (P, B, C) of the Range heads, and minus their log-densities."""
        if self.actor is None:
            return None, None
        return draw_stack(self.actor, obs, uniform[..., self.layout.num_choices :])

    def _is_plain(self, obs: Tensor, legal: Tensor | None) -> bool:
        """Whether there are kernels for it."""
        layout = self.layout
        return legal is None and layout.max_options <= FEW and can_branch(layout, obs)

    def _t(self, alpha: Tensor) -> Tensor:
        """Temperatures of the Choice heads, shaped to go with (P, 2, B, D)."""
        return temperatures_of(alpha, self.layout.choices).unsqueeze(-3)


def _twice_each(x: Tensor) -> Tensor:
    """Inputs (..., H, B, F) for both critics of every head, (..., 2, H, B, F)."""
    return x.unsqueeze(-4).expand(*x.shape[:-3], TWINS, *x.shape[-3:])
