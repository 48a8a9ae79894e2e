"""SAC-BDQ: the critic's advantages are the discrete policy, an actor has the continuous part."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.parts.heads import FEW, chosen, pick_options
from headwise.factorizations.parts.join import Columns, can_join, joined
from headwise.factorizations.parts.options_compiled import can_compile, soft_options
from headwise.factorizations.parts.values import chosen_centred, chosen_values, max_centred
from headwise.factorizations.shared import SharedPolicy
from headwise.factorizations.soft.base import TWINS, in_units_of, log_sum, temperatures_of, twice
from headwise.factorizations.soft.options import OptionsSoft
from headwise.factorizations.soft.worth import can_branch, draw_branches, lesser, soft_branches
from headwise.nets import Dueling, Mixer


class BranchingCritics(nn.Module):
    """V(s, a_c) and A_h(s, a_c, .) twice, with a mixer if the advantages do not just add up."""

    def __init__(self, blueprint: Blueprint, num_inputs: int, mixer_width: int) -> None:
        super().__init__()
        layout = blueprint.layout
        self.net = Dueling(
            blueprint.init,
            num_inputs,
            layout.total_options,
            blueprint.hidden,
            blueprint.branch_width,
            blueprint.activation,
            copies=(TWINS,),
            orthogonal=blueprint.orthogonal,
        )
        self.mixer: Mixer | None = None
        if mixer_width:
            self.mixer = Mixer(
                blueprint.init,
                layout.num_choices,
                self.net.embedding_size,
                mixer_width,
                copies=(TWINS,),
            )

    def effective(self, advantage: Tensor, embedding: Tensor) -> Tensor:
        """Advantages (P, 2, B, D, K) in units of the mixture: what options are drawn by."""
        if self.mixer is None:
            return advantage
        return advantage * self.mixer.slope_at_zero(embedding).unsqueeze(-1)


class BranchingSoft(OptionsSoft):
    """Q = V(s, a_c) + mixture of A_h(s, a_c, a_h); heads are drawn from softmax(A_h / alpha).

    In a mixture A_h stands for what it contributes, its slope at zero times A_h.
    """

    def __init__(self, blueprint: Blueprint, mixer_width: int = 0) -> None:
        super().__init__(blueprint, SharedPolicy)
        self._mixer_width = mixer_width
        device = self.layout.device
        self._numbers = Columns.of_numbers(self.layout.num_ranges, device)
        self._everything = torch.ones(TWINS, self.layout.num_ranges, device=device)

    def make_critic(self) -> BranchingCritics:
        """Twin critics."""
        return BranchingCritics(*self._critic_blueprint(), self._mixer_width)

    def sample(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Numbers from the actor, then options from the first critic's softmax."""
        numbers = self._draw_numbers(obs, uniform)
        if self._is_plain(critic, obs, legal) and self.layout.max_options <= FEW:
            flat = critic.net.advantages_alone(self._inputs(obs, numbers))
            return draw_branches(self.layout, flat, alpha, uniform, numbers)
        _, flat, embedding = self._outputs(critic, obs, numbers)
        effective = critic.effective(self._centred(flat, legal), embedding)
        log_policy = self._log_policy(effective, self._t(alpha), legal)
        options = pick_options(log_policy.select(-4, 0), uniform[..., : self.layout.num_choices])
        return self.layout.columns(options, numbers)

    def mode(self, critic: Any, obs: Tensor, legal: Tensor | None) -> Tensor:
        """The actor's mode, then the first critic's best options."""
        numbers = self._best_numbers(obs)
        _, flat, _ = self._outputs(critic, obs, numbers)
        advantage = self._centred(flat, legal)
        return self.layout.columns(advantage.select(-4, 0).argmax(-1).float(), numbers)

    def predict(
        self, critic: Any, obs: Tensor, action: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """V plus the mixture of the advantages of the options taken, (P, 2, B, 1)."""
        numbers = self.layout.range_columns(action) if self.layout.num_ranges else None
        allowed = None if legal is None else legal.unsqueeze(-4)
        in_use = twice(self._in_use(action)) if self.layout.is_conditional else None
        if critic.mixer is None:
            value, flat = critic.net(self._inputs(obs, numbers))
            return chosen_values(self.layout, value, flat, twice(action), allowed, in_use=in_use)
        value, flat, embedding = self._outputs(critic, obs, numbers)
        options = twice(self.layout.choice_numbers(action))
        picked = chosen_centred(self.layout, flat, options, allowed)
        mixed: Tensor = critic.mixer(picked if in_use is None else picked * in_use, embedding)
        return (value + mixed).unsqueeze(-1)

    # --- the pieces -----------------------------------------------------------------------------

    def _outputs(
        self, critic: Any, obs: Tensor, numbers: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """V (P, 2, B), raw advantages of all options (P, 2, B, total), and the embedding."""
        value, flat, embedding = critic.net.with_embedding(self._inputs(obs, numbers))
        return value, flat, embedding

    def _inputs(self, obs: Tensor, numbers: Tensor | None) -> Tensor:
        """What both critics see, (P, 2, B, O + C)."""
        if numbers is None:
            return twice(obs)
        if can_join(obs):
            return joined(self._numbers, obs, numbers, self._everything)
        return twice(torch.cat([obs, numbers], dim=-1))

    def _centred(self, flat: Tensor, legal: Tensor | None) -> Tensor:
        """Max-centred advantages (P, 2, B, D, K)."""
        allowed = None if legal is None else legal.unsqueeze(-4)
        return max_centred(self.layout, self.layout.pad(flat), allowed)

    def _log_policy(self, effective: Tensor, t: Tensor, legal: Tensor | None) -> Tensor:
        """Log-probabilities of the options (P, 2, B, D, K), from their effective advantages."""
        allowed = None if legal is None else legal.unsqueeze(-4)
        return torch.log_softmax(in_units_of(t, self.layout, effective, allowed), dim=-1)

    def _is_plain(self, critic: Any, obs: Tensor, legal: Tensor | None) -> bool:
        """Whether there are kernels for it."""
        return critic.mixer is None and legal is None and can_branch(self.layout, obs)

    def _soft(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        if not self._is_plain(critic, obs, legal):
            return super()._soft(critic, obs, uniform, alpha, legal)
        numbers, of_ranges = self._draw_judged(obs, uniform)
        value, flat = critic.net(self._inputs(obs, numbers))
        return *soft_branches(self.layout, flat, value, of_ranges, alpha), None

    def _over_options(
        self,
        critic: Any,
        obs: Tensor,
        numbers: Tensor | None,
        uniform: Tensor,
        alpha: Tensor,
        legal: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        if critic.mixer is None and legal is None and can_compile(self.layout, obs):
            value, flat = critic.net(self._inputs(obs, numbers))
            total, entropy = soft_options(self.layout, value, flat, alpha)
            return total.unsqueeze(-1), entropy, None
        value, flat, embedding = self._outputs(critic, obs, numbers)
        advantage = self._centred(flat, legal)
        t = self._t(alpha)
        log_policy = self._log_policy(critic.effective(advantage, embedding), t, legal)
        entropy = -(log_policy.exp() * log_policy).sum(-1)  # (P, 2, B, D)
        in_use = self.layout.activity(log_policy)
        if critic.mixer is not None:
            # Options are drawn, so what a change of their chances does to the mixture has no slope
            # here. It would cancel that of their entropies, which may not have one either.
            entropy = entropy.detach()
            in_use = None if in_use is None else in_use.detach()

        def weighted(x: Tensor) -> Tensor:  # with how likely each head is to be in use
            return x if in_use is None else x * in_use.index_select(-1, self.layout.choices)

        if critic.mixer is None:
            # In closed form: E[A_h] + alpha H_h = alpha log sum exp(A_h / alpha).
            total = value + weighted(t * log_sum(log_policy)).sum(-1)
        else:
            shared = uniform[..., : self.layout.num_choices].unsqueeze(-3)
            drawn = pick_options(log_policy, shared.expand(entropy.shape))
            action = self.layout.columns(drawn, None if numbers is None else twice(numbers))
            picked = chosen(advantage, drawn.long()) * self._in_use(action)
            total = value + critic.mixer(picked, embedding) + weighted(t * entropy).sum(-1)
        first = None if in_use is None else in_use.select(-3, 0)
        return lesser(total.unsqueeze(-1)), weighted(entropy).select(-3, 0), first

    def _t(self, alpha: Tensor) -> Tensor:
        """Temperatures of the Choice heads, shaped to go with (P, 2, B, D)."""
        return temperatures_of(alpha, self.layout.choices).unsqueeze(-3)

    def _in_use(self, action: Tensor) -> Tensor:
        return self.layout.active(action).index_select(-1, self.layout.choices)
