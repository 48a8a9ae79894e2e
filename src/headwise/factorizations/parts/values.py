"""Dueling values over heads, for DQN: V and max-centred advantages, mixed in one way or another.

Because the advantage of every head's best option is zero, the value of the greedy joint action is V
whatever the mixing, and each head's own maximum is the joint maximum.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.parts.centring import Given, best_of_all, best_of_one, centred, fits
from headwise.factorizations.parts.heads import chosen
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.options_compiled import can_compile, centre_options
from headwise.nets import Dueling


def max_centred(layout: Layout, advantage: Tensor, legal: Tensor | None = None) -> Tensor:
    """Advantages (..., D, K) minus their head's largest, so that the best option has zero."""
    masked = layout.masked(advantage, legal)
    return masked - masked.amax(-1, keepdim=True)


def chosen_centred(
    layout: Layout,
    flat: Tensor,
    options: Tensor,
    legal: Tensor | None = None,
    in_use: Tensor | None = None,
) -> Tensor:
    """The max-centred advantages of options (..., D) alone, from those of all (..., total).

    Where `in_use` (..., D) is given, ones and zeros, they are multiplied by it.
    """
    if fits(layout, flat):
        return centred(None, flat, Given(layout, options, in_use=in_use, legal=legal))
    if in_use is None and legal is None and can_compile(layout, flat):
        return centre_options(layout, None, flat, options, sums=False)
    picked = chosen(max_centred(layout, layout.pad(flat), legal), options.long())
    return picked if in_use is None else picked * in_use


def chosen_values(
    layout: Layout,
    value: Tensor,
    advantage: Tensor,
    action: Tensor,
    legal: Tensor | None = None,
    *,
    stacked: bool = False,
    sums: bool = True,
    in_use: Tensor | None = None,
) -> Tensor:
    """V plus the max-centred advantages along an action: their sum (..., 1), or each (..., D).

    Args:
        layout: The heads, all of them Choices.
        value: V (...), or each head's own (P, D, B) where networks are stacked and not added up.
        advantage: Of all options, (..., total), or (P, D, B, K) where networks are stacked.
        action: Options, (..., D).
        legal: Which options may be chosen, (..., D, K).
        stacked: Whether every head has a network of its own.
        sums: Whether advantages are added up.
        in_use: Ones and zeros (..., D) by which advantages are multiplied.
    """
    options = layout.choice_numbers(action)
    if fits(layout, advantage):
        given = Given(layout, options, stacked, sums, in_use=in_use, legal=legal)
        return centred(value, advantage, given)
    plain = not stacked and in_use is None and legal is None
    if plain and can_compile(layout, advantage):
        return centre_options(layout, value, advantage, options, sums=sums)
    padded = advantage.movedim(-3, -2) if stacked else layout.pad(advantage)
    picked = chosen(max_centred(layout, padded, legal), options.long())
    if in_use is not None:
        picked = picked * in_use
    if sums:
        return (value + picked.sum(-1)).unsqueeze(-1)
    return (value.transpose(-1, -2) if stacked else value.unsqueeze(-1)) + picked


def best_options(
    layout: Layout, advantage: Tensor, legal: Tensor | None = None, *, stacked: bool = False
) -> Tensor:
    """Each head's best option (..., D), from advantages as `chosen_values` has them."""
    if fits(layout, advantage):
        return best_of_all(layout, advantage, legal, stacked=stacked)
    padded = advantage.movedim(-3, -2) if stacked else layout.pad(advantage)
    return layout.masked(padded, legal).argmax(-1).float()


def with_best(
    layout: Layout, head: int, advantage: Tensor, legal: Tensor | None, action: Tensor
) -> Tensor:
    """Actions (..., D) with one head's best option, from its advantages (..., K) alone.

    The actions given are not to be used again: on a GPU they are overwritten.
    """
    if fits(layout, advantage):
        return best_of_one(layout, head, advantage, legal, action)
    scores = advantage.masked_fill(~layout.mask[head], -torch.inf)
    if legal is not None:
        scores = scores.masked_fill(~legal[..., head, :], -torch.inf)
    is_head = torch.arange(layout.num_heads, device=action.device) == head
    return torch.where(is_head, scores.argmax(-1, keepdim=True).float(), action)


class BranchingValue(nn.Module):
    """One dueling network for all heads."""

    num_columns = 1
    adds_up = True
    """Whether the heads' advantages are added up to one prediction, or each is one by itself."""

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__()
        self.layout = blueprint.layout
        self.net = Dueling(
            blueprint.init,
            blueprint.obs_size,
            self.layout.total_options,
            blueprint.hidden,
            blueprint.branch_width,
            blueprint.activation,
            orthogonal=blueprint.orthogonal,
        )

    def branches(self, obs: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The value (..., B), max-centred advantages (..., B, D, K), and the embedding."""
        value, flat, embedding = self.net.with_embedding(obs)
        return value, max_centred(self.layout, self.layout.pad(flat), legal), embedding

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """What is regressed on the target, (P, B, G)."""
        value, flat = self.net(obs)
        in_use = self.layout.active(action) if self.layout.is_conditional else None
        return chosen_values(
            self.layout, value, flat, action, legal, sums=self.adds_up, in_use=in_use
        )

    def best(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """Each head's best option, (P, B, H)."""
        return best_options(self.layout, self.net.advantages_alone(obs), legal)

    def best_value(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """V for every prediction, (P, B, G)."""
        value = self.net.value_alone(obs)
        return value.unsqueeze(-1).expand(*value.shape, self.num_columns)

    def joint(self, obs: Tensor, action: Tensor) -> Tensor:
        """The value of the joint action, (P, B)."""
        return self.predict(obs, action).squeeze(-1)

    def soft_heads(
        self, obs: Tensor, temperature: float, legal: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Log-policies softmax(A_h / t), (..., D, K), and soft values (..., B, G) of the state."""
        value, advantage, _ = self.branches(obs, legal)
        scaled = advantage / temperature
        gains = temperature * torch.logsumexp(scaled, dim=-1)
        log_policy = torch.log_softmax(scaled, dim=-1)
        likely = self.layout.activity(log_policy)
        return log_policy, self._soft_columns(value, gains if likely is None else gains * likely)

    def options(self, action: Tensor) -> Tensor:
        """The columns of `soft_heads` that an action picks, (..., D)."""
        return self.layout.choice_columns(action)

    def _soft_columns(self, value: Tensor, gains: Tensor) -> Tensor:
        return (value + gains.sum(-1)).unsqueeze(-1)
