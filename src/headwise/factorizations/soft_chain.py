"""Auto-regressive SAC: numbers from a chain of actors, then options from a chain of branches.

Q = V(s, a_c) + sum of A_h(s, a_c, a_<h; a_h), each max-centred for its prefix. The soft value is
taken along one prefix drawn from the policy, with the exact expectation inside each head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.heads import chosen, pick_options
from headwise.factorizations.layout import NEVER
from headwise.factorizations.prefix import Prefix, ordered
from headwise.factorizations.soft import (
    TWINS,
    log_sum,
    part_layout,
    temperatures_of,
    twice,
)
from headwise.factorizations.soft_options import OptionsSoft
from headwise.factorizations.values import max_centred
from headwise.factorizations.worth import lesser
from headwise.nets import MLP
from headwise.population import Linear


class ChainCritics(nn.Module):
    """V(s, a_c), and an advantage network for each Choice given the ones before it; all twice."""

    def __init__(self, blueprint: Blueprint, num_inputs: int, prefix: Prefix) -> None:
        super().__init__()
        gain = 2.0**0.5 if blueprint.orthogonal else None
        init, width, hidden = blueprint.init, blueprint.branch_width, blueprint.hidden
        activation = blueprint.activation
        self.state = MLP(init, num_inputs, hidden, activation, copies=(TWINS,), gain=gain)
        self.state_embedding = Linear(init, hidden[-1], width, copies=(TWINS,), gain=gain)
        self.value = Linear(init, width, 1, copies=(TWINS,))
        copies = (TWINS, prefix.layout.num_heads)
        self.encoder = MLP(
            init, num_inputs + prefix.size, hidden, activation, copies=copies, gain=gain
        )
        self.embedding = Linear(init, hidden[-1], width, copies=copies, gain=gain)
        self.advantage = Linear(init, width, prefix.layout.max_options, copies=copies)

    def state_value(self, x: Tensor) -> Tensor:
        """V of inputs (P, B, F), (P, 2, B)."""
        embedding = self.state_embedding(self.state(twice(x)), "tanh")
        value: Tensor = self.value(embedding).squeeze(-1)
        return value

    def advantages(self, x: Tensor) -> Tensor:
        """Raw advantages (P, 2, B, D, K) from the inputs of every head's network (P, D, B, F)."""
        both = x.unsqueeze(-4).expand(*x.shape[:-3], TWINS, *x.shape[-3:])
        raw: Tensor = self.advantage(self.embedding(self.encoder(both), "tanh"))
        return raw.movedim(-3, -2)

    def first_advantage(self, head: int, x: Tensor) -> Tensor:
        """Raw advantages (P, B, K) of one head by the first critic, from its input (P, B, F)."""
        copy = (0, head)  # stacked parameters are (P, 2, D, in, out)
        embedding = self.embedding.one(copy, self.encoder.one(copy, x), "tanh")
        return self.advantage.one(copy, embedding)


class ChainSoft(OptionsSoft):
    """SAC whose numbers and options are chosen one after the other."""

    def __init__(
        self,
        blueprint: Blueprint,
        order: tuple[str, ...] | None,
        make_actor: Callable[[Blueprint, tuple[str, ...] | None], Any],
    ) -> None:
        spec = blueprint.spec
        names = [spec.names[h] for h in ordered(spec, order)]

        def make_chain(ranges: Blueprint) -> Any:
            return make_actor(ranges, tuple(n for n in names if n in ranges.spec.names))

        super().__init__(blueprint, make_chain)
        options = part_layout(self.layout, self.layout.choices)
        self._options = options
        self._prefix = Prefix(options, [n for n in names if n in options.spec.names])

    def make_critic(self) -> ChainCritics:
        """Twin critics."""
        return ChainCritics(*self._critic_blueprint(), self._prefix)

    def sample(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Numbers from the actors, then option after option from the first critic."""
        numbers = self._draw_numbers(obs, uniform)
        x = self._inputs(obs, numbers)
        return self.layout.columns(self._unroll(critic, x, uniform, alpha, legal), numbers)

    def mode(self, critic: Any, obs: Tensor, legal: Tensor | None) -> Tensor:
        """The actors' modes, then the first critic's best option, one after the other."""
        numbers = self._best_numbers(obs)
        x = self._inputs(obs, numbers)
        return self.layout.columns(self._unroll(critic, x, None, None, legal), numbers)

    def predict(
        self, critic: Any, obs: Tensor, action: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """V plus the advantages along the options taken, (P, 2, B, 1)."""
        numbers = self.layout.range_columns(action) if self.layout.num_ranges else None
        options = self.layout.choice_columns(action)
        x = self._inputs(obs, numbers)
        advantage = self._along(critic, x, options.float(), legal)
        in_use = self.layout.active(action).index_select(-1, self.layout.choices)
        picked = chosen(advantage, twice(options)) * twice(in_use)
        value: Tensor = critic.state_value(x)
        return (value + picked.sum(-1)).unsqueeze(-1)

    # --- the pieces -----------------------------------------------------------------------------

    def _inputs(self, obs: Tensor, numbers: Tensor | None) -> Tensor:
        return obs if numbers is None else torch.cat([obs, numbers], dim=-1)

    def _along(self, critic: Any, x: Tensor, options: Tensor, legal: Tensor | None) -> Tensor:
        """Advantages (P, 2, B, D, K) for the prefixes that options (P, B, D) give."""
        allowed = None if legal is None else legal.unsqueeze(-4)
        raw = critic.advantages(self._prefix.inputs(x, options))
        return max_centred(self._options, raw, allowed)

    def _over_options(
        self,
        critic: Any,
        obs: Tensor,
        numbers: Tensor | None,
        uniform: Tensor,
        alpha: Tensor,
        legal: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The soft value along one prefix (P, B, 1), and the heads' entropies (P, B, D).

        The third says which heads the prefix uses, (P, B, H), where not all always are.
        """
        x = self._inputs(obs, numbers)
        with torch.no_grad():
            drawn = self._unroll(critic, x, uniform, alpha, legal)
        t = temperatures_of(alpha, self.layout.choices).unsqueeze(-3)
        scaled = self._along(critic, x, drawn, legal) / t.unsqueeze(-1)
        log_policy = torch.log_softmax(scaled, dim=-1)
        gains = t * log_sum(log_policy)
        log_policy = log_policy.select(-4, 0)
        entropy = -(log_policy.exp() * log_policy).sum(-1)
        in_use = None
        if self.layout.is_conditional:
            in_use = self.layout.active(self.layout.columns(drawn, numbers)).detach()
            gains = gains * twice(in_use[..., self.layout.choices])
            entropy = entropy * in_use[..., self.layout.choices]
        return lesser((critic.state_value(x) + gains.sum(-1)).unsqueeze(-1)), entropy, in_use

    def _unroll(
        self,
        critic: Any,
        x: Tensor,
        uniform: Tensor | None,
        alpha: Tensor | None,
        legal: Tensor | None,
    ) -> Tensor:
        """Option after option (P, B, D): drawn, or the best where chance is not wanted."""
        columns = [torch.zeros(x.shape[:-1], device=x.device)] * self._options.num_heads
        for head in self._prefix.order:
            so_far = torch.stack(columns, dim=-1)
            scores = critic.first_advantage(head, self._prefix.input_of(head, x, so_far))
            may = self._options.mask[head]
            if legal is not None:
                may = may & legal[..., head, :]
            scores = scores.masked_fill(~may, NEVER)
            if uniform is None or alpha is None:
                columns[head] = scores.argmax(-1).float()
            else:
                t = temperatures_of(alpha, self.layout.choices)[..., head : head + 1]
                log_policy = torch.log_softmax(scores / t, dim=-1)
                columns[head] = pick_options(log_policy, uniform[..., head])
        return torch.stack(columns, dim=-1)
