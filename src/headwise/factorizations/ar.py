"""Auto-regressive, the chain rule: each head's network sees the state and the heads before it.

As a value the advantages are max-centred for the prefix given: A_h = M_h - M_(h-1), where M_h is
the best that the remaining heads can do. The sum telescopes to Q - max Q, so the form can represent
any Q, and choosing the best head by head gives the best joint action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from headwise.factorizations.base import (
    Blueprint,
    Factorization,
    Judged,
    Policy,
    Value,
    factorizations,
)
from headwise.factorizations.parts.chain_draw import (
    Sampled,
    draw_number,
    sample_number,
    sample_option,
)
from headwise.factorizations.parts.critics import ValueCritic
from headwise.factorizations.parts.heads import FEW, Heads
from headwise.factorizations.parts.join import can_join
from headwise.factorizations.parts.prefix import Prefix, ordered
from headwise.factorizations.parts.stacks import PolicyStack
from headwise.factorizations.parts.values import chosen_values, max_centred, with_best
from headwise.factorizations.soft.base import Soft
from headwise.factorizations.soft.chain import ChainSoft
from headwise.factorizations.soft.concat import ConcatSoft
from headwise.nets import MLP
from headwise.nets.branches import by_way_of
from headwise.population import Linear
from headwise.spaces import ActionSpec


class ARPolicy(nn.Module):
    """A policy network for each head, given the heads before it."""

    def __init__(self, blueprint: Blueprint, order: tuple[str, ...] | None) -> None:
        super().__init__()
        self.layout = blueprint.layout
        self.prefix = Prefix(self.layout, order)
        self.stack = PolicyStack(blueprint, blueprint.obs_size + self.prefix.size)
        self.num_columns = self.layout.num_heads
        self.num_uniforms = self.stack.num_uniforms

    def sample(
        self, obs: Tensor, uniform: Tensor, legal: Tensor | None = None
    ) -> tuple[Tensor, Judged]:
        """Draws head after head; what the networks said on the way judges them all."""
        if self._can_sample_fused(obs, legal):
            return self._sample_fused(obs, uniform)
        raw, outputs = self._unroll(obs, legal, uniform)
        heads = self.stack.heads_from(torch.stack(outputs, dim=-2), legal)
        return raw, Judged(heads.log_prob(raw), heads, given=raw)

    def draw_numbers(self, obs: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Actions in the learner's form and minus the log-density of each head, both (P, B, H).

        For a chain of Ranges that are all in use; gradients flow through both.
        """
        if self._can_fuse(obs):
            return self._draw_fused(obs, uniform)
        units, judged = self._blank(obs), self._blank(obs)
        for head in self.prefix.order:
            outputs = self._outputs(head, obs, units)
            ranges = self.stack.range_from(head, outputs)
            raw, log_prob = ranges.draw_judged(self.stack.uniforms_of(head, uniform))
            units[head], judged[head] = ranges.to_unit(raw).squeeze(-1), log_prob.squeeze(-1)
        return torch.stack(units, dim=-1), -torch.stack(judged, dim=-1)

    def judge(self, obs: Tensor, raw: Tensor, legal: Tensor | None = None) -> Judged:
        """Log-probabilities and entropies of given raw actions: all heads at once."""
        heads = self.stack.heads(self.prefix.inputs(obs, self.to_unit(raw)), legal)
        return Judged(heads.log_prob(raw), heads, given=raw)

    def mode(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The most likely value of head after head."""
        return self._unroll(obs, legal, None)[0]

    def to_unit(self, raw: Tensor) -> Tensor:
        """Raw actions in the learner's form."""
        return self.stack.spread.to_unit(self.layout, raw)

    def _unroll(
        self, obs: Tensor, legal: Tensor | None, uniform: Tensor | None
    ) -> tuple[Tensor, list[Tensor]]:
        """Raw actions (P, B, H), and what each head's network said, (P, B, W)."""
        raw, said = self._blank(obs), [obs] * self.layout.num_heads
        units = raw.copy()
        for head in self.prefix.order:
            said[head] = self._outputs(head, obs, units)
            raw[head] = self.stack.draw_from(head, said[head], uniform, legal)
            units[head] = self.stack.spread.head_to_unit(self.layout, head, raw[head])
        return torch.stack(raw, dim=-1), said

    def _blank(self, obs: Tensor) -> list[Tensor]:
        return [torch.zeros(obs.shape[:-1], device=obs.device)] * self.layout.num_heads

    def _outputs(self, head: int, obs: Tensor, units: list[Tensor]) -> Tensor:
        so_far = torch.stack(units, dim=-1)
        return self.stack.outputs_of(head, self.prefix.input_of(head, obs, so_far))

    def _can_fuse(self, obs: Tensor) -> bool:
        spread = self.stack.spread
        return can_join(obs) and spread.kind == "squashed" and spread.from_state

    def _can_sample_fused(self, obs: Tensor, legal: Tensor | None) -> bool:
        layout, plain = self.layout, legal is None and not torch.is_grad_enabled()
        few = layout.max_options <= FEW and not layout.is_conditional
        squashed = self.stack.spread.kind == "squashed" or not layout.num_ranges
        return plain and few and squashed and can_join(obs)

    def _sample_fused(self, obs: Tensor, uniform: Tensor) -> tuple[Tensor, Judged]:
        layout, spread, said = self.layout, self.stack.spread, [obs] * self.layout.num_heads
        shape = (3, *obs.shape[:-1], layout.num_heads)
        so_far = Sampled(*torch.empty(shape, device=obs.device).unbind(0))
        for head in self.prefix.order:
            x, _ = self.prefix.input_on(head, obs, so_far.unit)
            said[head] = self.stack.outputs_of(head, x)
            if head in layout.choice_of:
                sample_option(layout, layout.choice_of[head], said[head], uniform, so_far)
                continue
            place = layout.range_of[head]
            free = None if spread.from_state else spread.free[..., place : place + 1]
            column = layout.num_choices + place
            sample_number(head, said[head], free, uniform, column, spread.bounds, so_far)

        def heads() -> Heads:
            return self.stack.heads_from(torch.stack(said, dim=-2))

        return so_far.raw, Judged(so_far.log_prob, heads, so_far.raw)

    def _draw_fused(self, obs: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """A draw with one kernel before each head's network, and one behind it."""
        shape = (2, *obs.shape[:-1], self.layout.num_heads)
        unit, entropy = torch.empty(shape, device=obs.device).unbind(0)
        for head in self.prefix.order:
            x, unit = self.prefix.input_on(head, obs, unit)
            outputs, column = self.stack.outputs_of(head, x), self.layout.range_of[head]
            unit, entropy = draw_number(
                (unit, entropy), head, outputs, uniform, column, self.stack.spread.bounds
            )
        return unit, entropy


class ARValue(nn.Module):
    """V(s), and an advantage network for each head given the heads before it."""

    num_columns = 1

    def __init__(self, blueprint: Blueprint, order: tuple[str, ...] | None) -> None:
        super().__init__()
        self.layout = blueprint.layout
        self.prefix = Prefix(self.layout, order)
        gain = 2.0**0.5 if blueprint.orthogonal else None
        copies = (self.layout.num_heads,)
        init, width = blueprint.init, blueprint.branch_width
        self.state = ValueCritic(blueprint)
        self.encoder = MLP(
            init,
            blueprint.obs_size + self.prefix.size,
            blueprint.hidden,
            blueprint.activation,
            copies=copies,
            gain=gain,
        )
        self.embedding = Linear(init, self.encoder.out_features, width, copies=copies, gain=gain)
        self.output = Linear(init, width, self.layout.max_options, copies=copies)

    def advantages(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """Advantages (..., B, H, K), each max-centred for the prefix that the action gives."""
        return max_centred(self.layout, self._raw(obs, action).movedim(-3, -2), legal)

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """V plus the advantages along the action, (P, B, 1)."""
        in_use = self.layout.active(action) if self.layout.is_conditional else None
        raw, value = self._raw(obs, action), self.state.value(obs).squeeze(-1)
        return chosen_values(self.layout, value, raw, action, legal, stacked=True, in_use=in_use)

    def best(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The best option of head after head."""
        action = torch.zeros(*obs.shape[:-1], self.layout.num_heads, device=obs.device)
        for head in self.prefix.order:
            x = self.prefix.input_of(head, obs, action)
            raw = by_way_of(self.encoder, self.embedding, self.output, x, head)
            action = with_best(self.layout, head, raw, legal, action)
        return action

    def _raw(self, obs: Tensor, action: Tensor) -> Tensor:
        """Advantages before they are centred, (..., H, B, K)."""
        x = self.prefix.inputs(obs, action)
        return by_way_of(self.encoder, self.embedding, self.output, x)

    def best_value(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """V: the advantages of the best options are zero."""
        return self.state.value(obs)

    def joint(self, obs: Tensor, action: Tensor) -> Tensor:
        """The value of the joint action, (P, B)."""
        return self.predict(obs, action).squeeze(-1)


@factorizations.register("ar")
@dataclass(frozen=True, kw_only=True)
class AR(Factorization):
    """A network for every head that sees the heads before it: the chain rule."""

    name: ClassVar[str] = "ar"
    joint_ratio: ClassVar[bool] = True
    order: tuple[str, ...] | None = None
    """Names of the heads in the order in which they are chosen; the spec's own if not given."""

    def check(self, spec: ActionSpec) -> None:
        """The order must fit the spec."""
        ordered(spec, self.order)

    def policy(self, blueprint: Blueprint) -> Policy:
        """A chain of policy networks."""
        return ARPolicy(blueprint, self.order)

    def critic(self, blueprint: Blueprint) -> ValueCritic:
        """One value of the state."""
        return ValueCritic(blueprint)

    def value(self, blueprint: Blueprint) -> Value:
        """V and a chain of advantage networks."""
        return ARValue(blueprint, self.order)

    def soft(self, blueprint: Blueprint) -> Soft:
        """A chain of actors over numbers, then a chain of the critics' branches over options."""
        if blueprint.layout.num_choices:
            return ChainSoft(blueprint, self.order, ARPolicy)
        return ConcatSoft(blueprint, lambda own: ARPolicy(own, self.order))
