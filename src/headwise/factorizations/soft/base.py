"""What SAC needs of a factorization, and what all of them share.

Temperatures are one number for each head, (P, H). Critics come in pairs, stacked: (P, 2, B, ...).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from headwise.errors import ConfigError
from headwise.factorizations.base import Blueprint
from headwise.factorizations.parts.layout import Layout
from headwise.population import Initializer, even_rows, member_mean
from headwise.population.warps import warps_for
from headwise.spaces import ActionSpec

TWINS = 2
_MOST_AT_ONCE = 4096
_FIRST_OF_CRITICS = 1000  # layers


class ActorLoss(NamedTuple):
    """What an actor is trained with, and how random it is."""

    gain: Tensor | None
    """What the actor should raise, (P, B, G), or None where there is no actor."""
    entropy: Tensor
    """Of each head, (P, B, H): exact for a Choice, minus the log-density drawn for a Range; both
    weighted with how likely the head is to be in use."""
    in_use: Tensor | None = None
    """How likely each head is to be in use, (P, B, H); None where all always are."""

    @property
    def loss(self) -> Tensor | None:
        """Minus the gain: the sum over columns, the mean over rows, (P,)."""
        return None if self.gain is None else -member_mean(self.gain.sum(-1))


class Soft(Protocol):
    """Maximum-entropy learning over heads."""

    actor: nn.Module | None
    """The module that the actor's loss trains, or None where the critic itself is the policy."""
    actor_has_options: bool
    """Whether options are drawn by the actor, which must learn them, and not by the critic."""
    tells_heads_apart: bool
    """Whether heads have entropies of their own, each counted as often as it is in use. If not, all
    of them have one temperature, and of the joint action's entropy a share each."""
    num_columns: int
    """Values for one action (G): 1, or H where each head has its own."""
    num_uniforms: int
    """Uniform numbers that one action takes."""
    num_noise: int
    """Uniform numbers that one differentiable action takes in the actor's loss."""

    def make_critic(self) -> nn.Module:
        """Twin critics; each call begins with the same values."""

    def largest_entropy(self, legal: Tensor | None) -> Tensor:
        """The most that each Choice's entropy can be, (H,); (P, B, H) where options are masked."""

    def sample(
        self, critic: nn.Module, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """Actions in the learner's form (P, B, H), drawn from the policy."""

    def mode(self, critic: nn.Module, obs: Tensor, legal: Tensor | None) -> Tensor:
        """The actions to take when chance is not wanted."""

    def predict(
        self, critic: nn.Module, obs: Tensor, action: Tensor, legal: Tensor | None = None
    ) -> Tensor:
        """What both critics think of given actions, (P, 2, B, G).

        Advantages are relative to the best option there was, so it must be known which were legal.
        """

    def soft_value(
        self, critic: nn.Module, obs: Tensor, uniform: Tensor, alpha: Tensor, legal: Tensor | None
    ) -> Tensor:
        """The value of states with the entropy to come, by the less hopeful critic, (P, B, G)."""

    def actor_loss(
        self,
        critic: nn.Module,
        obs: Tensor,
        noise: Tensor,
        alpha: Tensor,
        gumbel_temperature: Tensor,
        legal: Tensor | None,
    ) -> ActorLoss:
        """What the actor is trained with; the critic is a constant to it."""


def for_critics(blueprint: Blueprint) -> Blueprint:
    """What critics are built from, the same at every call.

    Target critics must begin as critics do, so the layers of each are numbered anew; and from a
    number that an actor's layers never reach, so that no critic begins like a part of the actor.
    """
    return replace(blueprint, init=Initializer(blueprint.init.keys, _FIRST_OF_CRITICS))


def twice(x: Tensor) -> Tensor:
    """Inputs (..., B, F) for both critics, (..., 2, B, F), without a copy."""
    return x.unsqueeze(-3).expand(*x.shape[:-2], TWINS, *x.shape[-2:])


def part_layout(layout: Layout, heads: Tensor, *, conditional: bool = True) -> Layout:
    """The layout of some heads alone.

    Conditions on other heads are not carried over, and none is if the part is not `conditional`.
    """
    numbers = heads.tolist()
    spec = layout.spec
    conditions = (spec.conditions[h] if conditional else None for h in numbers)
    part = ActionSpec(
        tuple(spec.names[h] for h in numbers),
        tuple(spec.heads[h] for h in numbers),
        tuple(
            None if c is None or c.head not in numbers else replace(c, head=numbers.index(c.head))
            for c in conditions
        ),
    )
    return Layout(part, layout.device)


def temperatures_of(alpha: Tensor, heads: Tensor) -> Tensor:
    """Temperatures (P, H) of some heads, shaped to go with (P, B, n)."""
    return alpha.index_select(-1, heads).unsqueeze(-2)


def in_units_of(t: Tensor, layout: Layout, advantage: Tensor, legal: Tensor | None) -> Tensor:
    """Max-centred advantages (..., D, K) by temperatures (..., D): the logits of a policy.

    Options that may not be chosen are masked again: a mixture that is flat, or a temperature that
    is close to zero, would make too little or too much of their advantages.
    """
    return layout.masked(advantage / t.unsqueeze(-1), legal)


def log_sum(log_policy: Tensor) -> Tensor:
    """Log sum exp of max-centred scores (..., K), from their log-softmax.

    The best score is zero, so its log-probability is minus the sum.
    """
    return -log_policy.max(-1).values


def straight_through(log_probs: Tensor, uniform: Tensor, temperature: Tensor) -> Tensor:
    """One-hot options (..., D, K) that pass gradients on as if they were a Gumbel-softmax."""
    hard: Tensor = _StraightThrough.apply(  # type: ignore[no-untyped-call]
        log_probs, uniform, temperature
    )
    return hard


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_probs: Tensor, uniform: Tensor, temperature: Tensor) -> Tensor:
        if log_probs.device.type == "cuda" and log_probs.shape[-1] <= _MOST_AT_ONCE:
            hard, soft = _relax_kernel(log_probs, uniform, temperature)
        else:
            gumbel = -torch.log(-torch.log(uniform.clamp(1e-6, 1.0 - 1e-6)))
            soft = torch.softmax((log_probs + gumbel) / temperature, dim=-1)
            hard = torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1.0)
        ctx.save_for_backward(soft, temperature)
        return hard

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        soft, temperature = ctx.saved_tensors
        slope = torch.ops.aten._softmax_backward_data(grad, soft, -1, soft.dtype)
        return slope / temperature, None, None


def _relax_kernel(log_probs: Tensor, uniform: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    from headwise.factorizations.kernels.heads import relax

    heads, options = log_probs.shape[-2:]
    hard, soft = torch.empty((2, *log_probs.shape), device=log_probs.device).unbind(0)
    uniform = even_rows(uniform.flatten(-2))  # a view of wider rows as it is
    relax[(hard.numel() // options,)](
        log_probs.contiguous(), uniform, uniform.stride(-2), temperature, hard, soft,
        hard.numel(), heads, options, OPTIONS=1 << (options - 1).bit_length(),
        num_warps=warps_for(options),
    )  # fmt: skip
    return hard, soft


def need_options(spec: ActionSpec, name: str) -> None:
    """Refuses a branching critic for an action without options: it would be SAC-Concat."""
    if not spec.num_choices:
        raise ConfigError(
            f"SAC with factorization {name!r} branches over options, and this action has none",
            got=str(spec),
            fix="Use factorization='shared', which is the same thing here.",
        )
