"""SAC-Concat: an actor over all heads, and critics that see the whole action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.parts.prefix import Prefix
from headwise.factorizations.soft.base import TWINS, ActorLoss, for_critics
from headwise.factorizations.soft.counterfactual import Questions
from headwise.factorizations.soft.draw import Drawn, draw, draw_units
from headwise.factorizations.soft.worth import lesser, worth
from headwise.nets import MLP
from headwise.population import Linear


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
        value: Tensor = self.encoder(x, self.output)
        return value


class ConcatSoft:
    """One value of the whole action, and an actor that learns its options from it.

    `counterfactual` asks the critics for every option of one head of each state, the other heads as
    drawn: unbiased, for as many evaluations as a head has options. `straight_through` relaxes
    options and follows the critics' slope at the action drawn: one evaluation, but biased.
    """

    num_columns = 1
    tells_heads_apart = True

    def __init__(self, blueprint: Blueprint, make_actor: Callable[[Blueprint], Any]) -> None:
        self.layout = blueprint.layout
        self._blueprint = blueprint
        self._embedding = Prefix(self.layout)
        self.actor: Any = make_actor(blueprint)
        self.num_uniforms: int = self.actor.num_uniforms
        self.actor_has_options = self.layout.num_choices > 0
        self._questions: Questions | None = None
        self._counterfactual = blueprint.actor_gradient == "counterfactual"
        relaxed = 0 if self._counterfactual else self.layout.num_choices
        self._num_gumbel = relaxed * self.layout.max_options
        self.num_noise = self._num_gumbel + self.num_uniforms

    def make_critic(self) -> ActionCritic:
        """Twin critics."""
        own = for_critics(self._blueprint)
        return ActionCritic(own, own.obs_size + self._embedding.size)

    def largest_entropy(self, legal: Tensor | None) -> Tensor:
        """The most that each Choice's entropy can be, (H,) or (P, B, H)."""
        return self.layout.largest_entropy(legal)

    def sample(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Actions drawn from the actor."""
        return draw_units(self.actor, obs, uniform, legal)

    def mode(self, critic: Any, obs: Tensor, legal: Tensor | None) -> Tensor:
        """The actor's mode."""
        unit: Tensor = self.actor.to_unit(self.actor.mode(obs, legal))
        return unit

    def predict(
        self, critic: Any, obs: Tensor, action: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """Both critics' values of given actions, (P, 2, B, 1)."""
        value: Tensor = critic(self._embedding.for_twins(obs, action))
        return value

    def soft_value(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Min Q of an action drawn, plus what its randomness is worth."""
        drawn = draw(self.actor, obs, uniform, legal)
        return worth(self.predict(critic, obs, drawn.unit), drawn.entropy, alpha)

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
        gumbel, rest = noise[..., : self._num_gumbel], noise[..., self._num_gumbel :]
        drawn = draw(self.actor, obs, rest, legal)
        unit, entropy, log_probs = drawn.unit, drawn.entropy, drawn.log_probs
        if log_probs is None:
            gain = worth(self.predict(critic, obs, unit), entropy, alpha)
        elif self._counterfactual:
            value = self._expected(critic, obs, drawn, log_probs, alpha)
            gain = value + (alpha.unsqueeze(-2) * entropy).sum(-1, keepdim=True)
        else:
            x = self._embedding.relaxed_for_twins(obs, unit, log_probs, gumbel, gumbel_temperature)
            gain = worth(critic(x), entropy, alpha)
        return ActorLoss(gain, entropy, drawn.in_use)

    def _expected(
        self, critic: Any, obs: Tensor, drawn: Drawn, log_probs: Tensor, alpha: Tensor
    ) -> Tensor:
        """What each Choice head may expect while the other heads are as drawn, summed, (P, B, 1).

        Its gradient by the actor is that of the expected value, on average over draws and states.
        Numbers of Range heads have theirs through the critics at the action drawn. An option that
        puts numbers in use is also worth their randomness, `drawn.surprise` at its temperature:
        it is part of the value that the critics learn. That of options in use has its gradient
        through the heads' entropies.
        """
        rows, unit = obs.shape[-2], drawn.unit
        if self._questions is None or self._questions.rows != rows:
            self._questions = Questions(self.layout, rows)
        with torch.no_grad():
            states, actions = self._questions.states(obs), self._questions.actions(unit)
            found = lesser(self.predict(critic, states, actions)).squeeze(-1)
            if drawn.surprise is not None:
                paid = self._questions.states(alpha.unsqueeze(-2) * drawn.surprise)
                found = found + self.layout.used(paid, actions).sum(-1)
            answers = self._questions.answers(found)
        value = (log_probs.exp() * answers).sum((-2, -1)).unsqueeze(-1)
        if self.layout.num_ranges:
            value = value + lesser(self.predict(critic, obs, unit))
        return value
