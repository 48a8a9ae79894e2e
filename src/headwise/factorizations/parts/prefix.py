"""What an auto-regressive head sees of the heads before it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headwise.errors import ConfigError
from headwise.factorizations.parts.join import Columns, can_join, joined, joined_on, relaxed
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.options_compiled import (
    can_compile,
    embed_actions,
    is_compiled,
    relax_options,
)
from headwise.factorizations.soft.base import TWINS, straight_through, twice
from headwise.registry import unknown
from headwise.spaces import ActionSpec, Choice


class Prefix:
    """Embeds actions, and hides from each head what comes after it.

    A Choice is one-hot, a Range its unit value, and a Choice that is a cut-up Range the unit value
    of its bin. A head that an action does not use is all zeros: what it says means nothing.

    Args:
        layout: The heads.
        order: Names of all heads, in the order in which they are chosen; None is the spec's own.
    """

    def __init__(self, layout: Layout, order: Sequence[str] | None = None) -> None:
        spec = layout.spec
        self.layout = layout
        self.order = ordered(spec, order)
        """Numbers of the heads in the order in which they are chosen."""
        rank = torch.empty(spec.num_heads)
        rank[list(self.order)] = torch.arange(spec.num_heads, dtype=torch.float32)
        is_number = [not isinstance(h, Choice) or h.ordered for h in spec.heads]
        self._numbers = torch.tensor([i for i, n in enumerate(is_number) if n], dtype=torch.long)
        self._options = torch.tensor(
            [i for i, n in enumerate(is_number) if not n], dtype=torch.long
        )
        self._number_heads = self._numbers.tolist()
        self._places = torch.tensor(
            [layout.choice_of[head] for head in self._options.tolist()], dtype=torch.long
        )
        sizes = torch.tensor([spec.cardinalities[int(i)] for i in self._options], dtype=torch.long)
        self._holders = self._options.repeat_interleave(sizes)  # whose option a column stands for
        self._values = torch.cat([torch.arange(0), *map(torch.arange, sizes.tolist())])  # and which
        padded = self._places.repeat_interleave(sizes) * layout.max_options
        self._kept = padded + self._values  # where it is among padded options
        owner = self._owner = torch.cat([self._holders, self._numbers])
        self.size = len(owner)
        """Numbers in an embedding (Z)."""
        self.visible = (rank[owner] < rank.unsqueeze(-1)).float()
        """Which of them each head may see, (H, Z)."""
        # An option b of n bins is the unit value 2 b / (n - 1) - 1; a Range is itself.
        bins = [float(spec.cardinalities[int(i)]) for i in self._numbers]
        self._scale = torch.tensor([2.0 / (n - 1.0) if n > 1 else 1.0 for n in bins])
        self._shift = torch.tensor([-1.0 if n > 1 else 0.0 for n in bins])
        self._are_units = not any(bins)
        for name in (
            "_numbers", "_holders", "_values", "_kept", "_owner", "visible", "_scale", "_shift",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name).to(layout.device))
        self._everything = torch.ones(TWINS, self.size, device=layout.device)
        self.columns = self._as_columns()
        """The embedding as the kernels of `join.py` know it."""

    def embed(self, action: Tensor) -> Tensor:
        """Actions in the learner's form (..., H) as (..., Z)."""
        parts = []
        if len(self._holders):
            options = action.index_select(-1, self._holders)
            parts.append((options == self._values).to(action.dtype))
        if len(self._numbers):
            numbers = action.index_select(-1, self._numbers)
            parts.append(numbers if self._are_units else numbers * self._scale + self._shift)
        return self._in_use(torch.cat(parts, dim=-1), action)

    def embed_relaxed(self, options: Tensor, action: Tensor) -> Tensor:
        """`embed` with options given as weights (..., D, K), so that gradients reach them.

        Of the action only numbers count: its own options were drawn apart from these.
        """
        layout, parts = self.layout, []
        if len(self._holders):
            parts.append(options.flatten(-2).index_select(-1, self._kept))
        if len(self._numbers) and self._are_units:
            parts.append(action.index_select(-1, self._numbers))
        elif len(self._numbers):
            columns = []
            for head in self._number_heads:
                if head in layout.choice_of:  # a cut-up Range: the mean number of its bin
                    weights = options[..., layout.choice_of[head], :]
                    number = torch.arange(weights.shape[-1], device=weights.device)
                    columns.append((weights * number).sum(-1))
                else:
                    columns.append(action[..., head])
            parts.append(torch.stack(columns, dim=-1) * self._scale + self._shift)
        if layout.is_conditional:  # what is in use follows from the options that are seen
            numbers = layout.range_columns(action) if layout.num_ranges else None
            action = layout.columns(options.argmax(-1).to(action.dtype), numbers)
        return self._in_use(torch.cat(parts, dim=-1), action)

    def for_twins(self, obs: Tensor, action: Tensor) -> Tensor:
        """Inputs of twin critics that see the whole action, (..., 2, B, O + Z)."""
        if self._can_join(obs):
            return joined(self.columns, obs, action, self._everything)
        if self._can_embed(obs, action):
            return twice(embed_actions(self.columns, obs, action))
        return twice(torch.cat([obs, self.embed(action)], dim=-1))

    def relaxed_for_twins(
        self, obs: Tensor, action: Tensor, log_probs: Tensor, noise: Tensor, temperature: Tensor
    ) -> Tensor:
        """`for_twins` with options drawn anew (`straight_through`), so that gradients reach them.

        Args:
            obs: The observations, (P, B, O).
            action: Actions (P, B, H), of which the numbers are taken.
            log_probs: Of the options, (P, B, D, K).
            noise: Uniform numbers, (P, B, D * K).
            temperature: How soft options are.
        """
        if self._can_join(obs):
            return relaxed(self.columns, self.layout, obs, log_probs, noise, temperature, action)
        if can_compile(self.layout, obs) and self._can_embed(obs):
            return relax_options(
                self.columns, self.layout, obs, log_probs, noise, temperature, action
            )
        options = straight_through(log_probs, noise.reshape(log_probs.shape), temperature)
        return twice(torch.cat([obs, self.embed_relaxed(options, action)], dim=-1))

    def inputs(self, obs: Tensor, action: Tensor) -> Tensor:
        """The inputs of all heads' networks at once, (..., H, B, O + Z)."""
        if self._can_join(obs):
            return joined(self.columns, obs, action, self.visible)
        seen = self.embed(action).unsqueeze(-3) * self.visible.unsqueeze(-2)
        wide = obs.unsqueeze(-3).expand(*seen.shape[:-1], obs.shape[-1])
        return torch.cat([wide, seen], dim=-1)

    def input_of(self, head: int, obs: Tensor, action: Tensor) -> Tensor:
        """The input of one head's network, (..., B, O + Z)."""
        if self._can_join(obs):
            return joined(self.columns, obs, action, self.visible[head : head + 1]).squeeze(1)
        return torch.cat([obs, self.embed(action) * self.visible[head]], dim=-1)

    def input_on(self, head: int, obs: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """`input_of` on a GPU with nothing conditional, and the actions to go on with.

        What the head does not see may be anything. See `joined_on`.
        """
        x, action = joined_on(self.columns, obs, action, self.visible[head : head + 1])
        return x.squeeze(1), action

    def _can_join(self, obs: Tensor) -> bool:
        return can_join(obs) and not self.layout.is_conditional

    def _can_embed(self, *given: Tensor) -> bool:
        """Whether the compiled module can do it; there is no gradient by what is given."""
        plain = not self.layout.is_conditional and all(map(is_compiled, given))
        return plain and not (torch.is_grad_enabled() and any(x.requires_grad for x in given))

    def _as_columns(self) -> Columns:
        options = torch.ones(len(self._values), device=self.layout.device)
        return Columns(
            owner=self._owner,
            match=torch.cat([self._values.float(), torch.full_like(self._scale, -1.0)]),
            scale=torch.cat([options, self._scale]),
            shift=torch.cat([0.0 * options, self._shift]),
            column_of=torch.stack(
                [(self._owner == h).int().argmax() for h in range(self.layout.num_heads)]
            ),
        )

    def _in_use(self, embedding: Tensor, action: Tensor) -> Tensor:
        if not self.layout.is_conditional:
            return embedding
        return embedding * self.layout.active(action).index_select(-1, self._owner)


def ordered(spec: ActionSpec, order: Sequence[str] | None) -> tuple[int, ...]:
    """The numbers of the heads in the order given by name."""
    if order is None:
        return tuple(range(spec.num_heads))
    for name in order:
        if name not in spec.names:
            raise unknown("head", name, spec.names)
    if sorted(order) != sorted(spec.names):
        raise ConfigError(
            "an order must name every head once", got=list(order), allowed=", ".join(spec.names)
        )
    numbers = tuple(spec.names.index(name) for name in order)
    for head, condition in enumerate(spec.conditions):
        if condition is not None and numbers.index(condition.head) > numbers.index(head):
            raise ConfigError(
                "a parameter cannot be chosen before the choice that puts it in use",
                got=f"{spec.names[head]!r} before {spec.names[condition.head]!r}",
            )
    return numbers
