"""Dueling values over heads, for DQN: V and max-centred advantages, mixed in one way or another.

Because the advantage of every head's best option is zero, the value of the greedy joint action is V
whatever the mixing, and each head's own maximum is the joint maximum.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from headwise.factorizations.base import Blueprint
from headwise.factorizations.heads import chosen
from headwise.factorizations.layout import Layout
from headwise.nets import Dueling

_MOST_AT_ONCE = 4096


def max_centred(layout: Layout, advantage: Tensor, legal: Tensor | None = None) -> Tensor:
    """Advantages (..., D, K) minus their head's largest, so that the best option has zero."""
    masked = layout.masked(advantage, legal)
    return masked - masked.amax(-1, keepdim=True)


def chosen_centred(
    layout: Layout, flat: Tensor, options: Tensor, legal: Tensor | None = None
) -> Tensor:
    """The max-centred advantages of options (..., D) alone, from those of all (..., total)."""
    if flat.device.type == "cuda" and legal is None and layout.mask.numel() <= _MOST_AT_ONCE:
        picked: Tensor = _ChosenCentred.apply(flat, options, layout)  # type: ignore[no-untyped-call]
        return picked
    return chosen(max_centred(layout, layout.pad(flat), legal), options)


class _ChosenCentred(torch.autograd.Function):
    """The same in one kernel, and one on the way back; of equally good options the first is best.

    Untouched, the best option's gradient and the chosen one's are scattered by a dozen kernels.
    """

    @staticmethod
    def forward(ctx: Any, flat: Tensor, options: Tensor, layout: Layout) -> Tensor:
        from headwise.factorizations.values_kernel import centre

        flat, options = flat.contiguous(), options.contiguous()
        out = torch.empty(options.shape, device=flat.device)
        best = torch.empty_like(options)
        ctx.bounds, ctx.sizes = layout.bounds, (flat.shape[-1], layout.num_choices)
        ctx.blocks = {
            "HEADS": 1 << (layout.num_choices - 1).bit_length(),
            "OPTIONS": 1 << (layout.max_options - 1).bit_length(),
        }
        grid = (options.numel() // layout.num_choices,)
        centre[grid](flat, options, layout.bounds, out, best, *ctx.sizes, **ctx.blocks)
        ctx.save_for_backward(options, best)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        from headwise.factorizations.values_kernel import centre_back

        options, best = ctx.saved_tensors
        to_flat = torch.empty(*grad.shape[:-1], ctx.sizes[0], device=grad.device)
        grid = (options.numel() // ctx.sizes[1],)
        centre_back[grid](
            grad.contiguous(), options, best, ctx.bounds, to_flat, *ctx.sizes, **ctx.blocks
        )
        return to_flat, None, None


def can_soften(layout: Layout, flat: Tensor) -> bool:
    """Whether `soften` can take these outputs: on a GPU, without gradients or conditions."""
    few = layout.mask.numel() <= _MOST_AT_ONCE and not layout.is_conditional
    return few and flat.device.type == "cuda" and not flat.requires_grad


def soften(
    layout: Layout, flat: Tensor, value: Tensor, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    """V + sum over heads of t log sum exp(A / t), and the entropies of softmax(A / t), as a kernel.

    Args:
        layout: The heads.
        flat: Advantages of all options, (P, ..., B, total); they need not be centred.
        value: V, (P, ..., B).
        temperature: One for each head of each member, (P, D).
    """
    from headwise.factorizations.values_kernel import soften as kernel

    flat, value = flat.contiguous(), value.contiguous()
    heads = layout.num_choices
    total = torch.empty_like(value)
    entropy = torch.empty(*value.shape, heads, device=value.device)
    kernel[(value.numel(),)](
        flat, value, temperature.contiguous(), layout.bounds, total, entropy,
        value.numel() // temperature[..., -1].numel(), flat.shape[-1], heads,
        HEADS=1 << (heads - 1).bit_length(), OPTIONS=1 << (layout.max_options - 1).bit_length(),
    )  # fmt: skip
    return total, entropy


class BranchingValue(nn.Module):
    """One dueling network for all heads; `mixed` says what its advantages add up to."""

    num_columns = 1

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
        embedding = self.net.embed(obs)
        value, flat = self.net.outputs(embedding)
        return value, max_centred(self.layout, self.layout.pad(flat), legal), embedding

    def mixed(self, value: Tensor, advantage: Tensor, embedding: Tensor, action: Tensor) -> Tensor:
        """The predictions (..., B, G) for chosen advantages (..., B, D): here their sum."""
        return (value + advantage.sum(-1)).unsqueeze(-1)

    def predict(self, obs: Tensor, action: Tensor, legal: Tensor | None = None) -> Tensor:
        """What is regressed on the target, (P, B, G)."""
        embedding = self.net.embed(obs)
        value, flat = self.net.outputs(embedding)
        picked = chosen_centred(self.layout, flat, self.layout.choice_columns(action), legal)
        return self.mixed(value, self.layout.used(picked, action), embedding, action)

    def best(self, obs: Tensor, legal: Tensor | None = None) -> Tensor:
        """Each head's best option, (P, B, H)."""
        _, flat = self.net(obs)
        return self.layout.masked(self.layout.pad(flat), legal).argmax(-1).float()

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
