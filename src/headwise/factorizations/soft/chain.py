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
from headwise.factorizations.parts.chain_draw import draw_option
from headwise.factorizations.parts.heads import FEW, pick_options
from headwise.factorizations.parts.join import Columns, can_join, joined
from headwise.factorizations.parts.layout import NEVER
from headwise.factorizations.parts.prefix import Prefix, ordered
from headwise.factorizations.parts.values import chosen_values, max_centred
from headwise.factorizations.soft.base import (
    TWINS,
    in_units_of,
    log_sum,
    part_layout,
    temperatures_of,
    twice,
)
from headwise.factorizations.soft.options import OptionsSoft
from headwise.factorizations.soft.worth import can_branch, lesser, soft_branches
from headwise.nets import MLP
from headwise.nets.branches import by_way_of
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
        """V of the inputs of both (P, 2, B, F), (P, 2, B)."""
        return by_way_of(self.state, self.state_embedding, self.value, x).squeeze(-1)

    def advantages(self, x: Tensor) -> Tensor:
        """Raw advantages (P, 2, D, B, K) from the inputs of all networks (P, 2, D, B, F)."""
        return by_way_of(self.encoder, self.embedding, self.advantage, x)

    def first_advantage(self, head: int, x: Tensor) -> Tensor:
        """Raw advantages (P, B, K) of one head by the first critic, from its input (P, B, F)."""
        copy = (0, head)  # stacked parameters are (P, 2, D, in, out)
        return by_way_of(self.encoder, self.embedding, self.advantage, x, copy)


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
        self._numbers = Columns.of_numbers(self.layout.num_ranges, self.layout.device)
        self._everything = torch.ones(TWINS, self.layout.num_ranges, device=self.layout.device)
        self._columns = self._all_columns()
        visible = torch.nn.functional.pad(
            self._prefix.visible, (self.layout.num_ranges, 0), value=1.0
        )
        self._visible = visible.repeat(TWINS, 1)  # of numbers and options, (2 D, C + Z)

    def make_critic(self) -> ChainCritics:
        """Twin critics."""
        return ChainCritics(*self._critic_blueprint(), self._prefix)

    def sample(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Numbers from the actors, then option after option from the first critic."""
        numbers = self._draw_numbers(obs, uniform)
        if self._is_plain(obs, legal):
            return self._draw_fused(critic, obs, numbers, uniform, alpha)
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
        value, raw = self._along(critic, obs, action, numbers)
        allowed = None if legal is None else legal.unsqueeze(-4)
        in_use = None
        if self.layout.is_conditional:
            used = self.layout.active(action).index_select(-1, self.layout.choices)
            in_use = twice(used)
        return chosen_values(
            self.layout, value, raw, twice(action), allowed, stacked=True, in_use=in_use
        )

    # --- the pieces -----------------------------------------------------------------------------

    def _inputs(self, obs: Tensor, numbers: Tensor | None) -> Tensor:
        return obs if numbers is None else torch.cat([obs, numbers], dim=-1)

    def _along(
        self, critic: Any, obs: Tensor, action: Tensor, numbers: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """V (P, 2, B), and raw advantages (P, 2, D, B, K) for the prefixes that actions give."""
        if self._can_join(obs):
            state = twice(obs)
            if numbers is not None:
                state = joined(self._numbers, obs, numbers, self._everything)
            x = joined(self._columns, obs, action, self._visible)
            each = x.view(len(x), TWINS, -1, *x.shape[-2:])
        else:
            x = self._inputs(obs, numbers)
            state = twice(x)
            one = self._prefix.inputs(x, self.layout.choice_numbers(action))
            each = one.unsqueeze(-4).expand(*one.shape[:-3], TWINS, *one.shape[-3:])
        return critic.state_value(state), critic.advantages(each)

    def _soft(
        self, critic: Any, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        if not self._is_plain(obs, legal):
            return super()._soft(critic, obs, uniform, alpha, legal)
        numbers, of_ranges = self._draw_judged(obs, uniform)
        with torch.no_grad():
            action = self._draw_fused(critic, obs, numbers, uniform, alpha)
        if numbers is not None and numbers.requires_grad:
            action = self.layout.columns(self.layout.choice_numbers(action), numbers)
        value, raw = self._along(critic, obs, action, numbers)
        return *soft_branches(self.layout, raw, value, of_ranges, alpha, stacked=True), None

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
        with torch.no_grad():
            drawn = self._unroll(critic, self._inputs(obs, numbers), uniform, alpha, legal)
        action = self.layout.columns(drawn, numbers)
        value, raw = self._along(critic, obs, action, numbers)
        allowed = None if legal is None else legal.unsqueeze(-4)
        t = temperatures_of(alpha, self.layout.choices).unsqueeze(-3)
        centred = max_centred(self._options, raw.movedim(-3, -2), allowed)
        scaled = in_units_of(t, self._options, centred, allowed)
        log_policy = torch.log_softmax(scaled, dim=-1)
        gains = t * log_sum(log_policy)
        log_policy = log_policy.select(-4, 0)
        entropy = -(log_policy.exp() * log_policy).sum(-1)
        in_use = None
        if self.layout.is_conditional:
            in_use = self.layout.active(action).detach()
            gains = gains * twice(in_use[..., self.layout.choices])
            entropy = entropy * in_use[..., self.layout.choices]
        return lesser((value + gains.sum(-1)).unsqueeze(-1)), entropy, in_use

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

    # --- the same with few kernels, on a GPU ----------------------------------------------------

    def _draw_fused(
        self, critic: Any, obs: Tensor, numbers: Tensor | None, uniform: Tensor, alpha: Tensor
    ) -> Tensor:
        """Actions (P, B, H) with option after option drawn, beside the numbers."""
        layout = self.layout
        action = torch.empty(*obs.shape[:-1], layout.num_heads, device=obs.device)
        if numbers is not None and layout.in_order:
            action[..., layout.num_choices :] = numbers
        elif numbers is not None:
            action.index_copy_(-1, layout.ranges, numbers)
        for head in self._prefix.order:
            x = joined(self._columns, obs, action, self._visible[head : head + 1]).squeeze(1)
            draw_option(layout, head, critic.first_advantage(head, x), alpha, uniform, action)
        return action

    def _can_join(self, obs: Tensor) -> bool:
        return can_join(obs) and not self.layout.is_conditional

    def _is_plain(self, obs: Tensor, legal: Tensor | None) -> bool:
        """Whether there are kernels for drawing options and for the soft value."""
        few = self.layout.max_options <= FEW and can_branch(self.layout, obs)
        return few and legal is None and self._can_join(obs)

    def _all_columns(self) -> Columns:
        """All numbers of an action, then its options as `Prefix` has them."""
        ours, layout, count = self._prefix.columns, self.layout, self.layout.num_ranges
        column_of = torch.cat([count + ours.column_of, self._numbers.column_of])
        return Columns(
            owner=torch.cat([layout.ranges, layout.choices[ours.owner]]),
            match=torch.cat([self._numbers.match, ours.match]),
            scale=torch.cat([self._numbers.scale, ours.scale]),
            shift=torch.cat([self._numbers.shift, ours.shift]),
            column_of=column_of[layout.restore],
        )
