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
from headwise.factorizations.critics import ValueCritic
from headwise.factorizations.prefix import Prefix, ordered
from headwise.factorizations.soft import Soft
from headwise.factorizations.soft_chain import ChainSoft
from headwise.factorizations.soft_concat import ConcatSoft
from headwise.factorizations.stacks import PolicyStack
from headwise.factorizations.values import chosen_values, max_centred, with_best
from headwise.nets import MLP
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
        """Draws head after head, then judges all at once."""
        raw = self._unroll(obs, legal, uniform)
        return raw, self.judge(obs, raw, legal)

    def judge(self, obs: Tensor, raw: Tensor, legal: Tensor | None = None) -> Judged:
        """Log-probabilities and entropies of given raw actions: all heads at once."""
        heads = self.stack.heads(self.prefix.inputs(obs, self.to_unit(raw)), legal)
        return Judged(heads.log_prob(raw), heads, given=raw)

    def mode(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """The most likely value of head after head."""
        return self._unroll(obs, legal, None)

    def to_unit(self, raw: Tensor) -> Tensor:
        """Raw actions in the learner's form."""
        return self.stack.spread.to_unit(self.layout, raw)

    def _unroll(self, obs: Tensor, legal: Tensor | None, uniform: Tensor | None) -> Tensor:
        empty = torch.zeros(obs.shape[:-1], device=obs.device)
        columns = [empty] * self.layout.num_heads
        for head in self.prefix.order:
            so_far = self.to_unit(torch.stack(columns, dim=-1))
            columns[head] = self.stack.draw(
                head, self.prefix.input_of(head, obs, so_far), uniform, legal
            )
        return torch.stack(columns, dim=-1)


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
            embedding = self.embedding.one(head, self.encoder.one(head, x), "tanh")
            raw = self.output.one(head, embedding)
            action = with_best(self.layout, head, raw, legal, action)
        return action

    def _raw(self, obs: Tensor, action: Tensor) -> Tensor:
        """Advantages before they are centred, (..., H, B, K)."""
        embedding = self.embedding(self.encoder(self.prefix.inputs(obs, action)), "tanh")
        raw: Tensor = self.output(embedding)
        return raw

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
