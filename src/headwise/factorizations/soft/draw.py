"""Drawing from an actor for SAC: actions in the learner's form, and how random each head is."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from headwise.factorizations.parts.heads import FEW, Heads, pick_options
from headwise.factorizations.parts.join import dense_rows
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.options_compiled import draw_heads, draw_heads_back, is_compiled
from headwise.factorizations.parts.stacks import for_each_head

_ROWS = 64  # of the kernels: rows at a time


class Drawn(NamedTuple):
    """Actions and the distribution that they are from."""

    unit: Tensor
    """Actions in the learner's form, (P, B, H)."""
    entropy: Tensor
    """Of each head, (P, B, H): exact for a Choice, minus the log-density drawn for a Range; both
    weighted with how likely the head is to be in use."""
    log_probs: Tensor | None
    """Log-probabilities of the options, (P, B, D, K)."""
    in_use: Tensor | None
    """How likely each head is to be in use, (P, B, H); None where all always are."""
    surprise: Tensor | None = None
    """Minus the log-density of every number drawn, in use or not, (P, B, H), and zero for a Choice;
    None where all heads always are in use."""


def draw(actor: Any, obs: Tensor, uniform: Tensor, legal: Tensor | None = None) -> Drawn:
    """Draws from an actor; gradients flow through numbers, entropies and log-probabilities."""
    layout: Layout = actor.layout
    if _is_chain(actor):
        unit, entropy = actor.draw_numbers(obs, uniform)
        return Drawn(unit, entropy, None, None)
    if not _is_one_network(actor):
        raw, judged = actor.sample(obs, uniform, legal)
        heads, unit = judged.heads, actor.to_unit(raw)
        entropy = _entropy(heads, judged.log_prob)
        return Drawn(unit, entropy, heads.log_probs, heads.activity(), _surprise(heads, raw))
    if _can_fuse(actor, obs, legal):
        return _drawn_at_once(actor, obs, uniform)
    heads = actor.heads(obs, legal)
    options, rest = _options(heads, uniform)
    numbers = of_options = of_numbers = None
    if heads.log_probs is not None:
        of_options = heads.option_entropy()
    if heads.ranges is not None:
        raw, log_prob = heads.ranges.draw_judged(rest)
        numbers, of_numbers = heads.ranges.to_unit(raw), -log_prob
    unit = layout.columns(options, numbers)
    return Drawn(unit, layout.columns(of_options, of_numbers), heads.log_probs, None)


def draw_units(actor: Any, obs: Tensor, uniform: Tensor, legal: Tensor | None = None) -> Tensor:
    """The actions alone, (P, B, H)."""
    if _is_chain(actor):
        return actor.draw_numbers(obs, uniform)[0]  # type: ignore[no-any-return]
    if not _is_one_network(actor):
        raw, _ = actor.sample(obs, uniform, legal)
        unit: Tensor = actor.to_unit(raw)
        return unit
    if _can_fuse(actor, obs, legal):
        return _drawn_at_once(actor, obs, uniform).unit
    heads: Heads = actor.heads(obs, legal)
    options, rest = _options(heads, uniform)
    numbers = None
    if heads.ranges is not None:
        numbers = heads.ranges.to_unit(heads.ranges.draw(rest))
    return heads.layout.columns(options, numbers)


def draw_stack(stack: Any, obs: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Draws from a network for each head, none of them a Choice: actions and entropies."""
    layout: Layout = stack.layout
    assert not layout.num_choices
    x = for_each_head(obs, layout.num_heads)
    if obs.device.type == "cuda" and _can_fuse(stack, obs, None) and not layout.is_conditional:
        unit, entropy, _ = _DrawHeads.apply(  # type: ignore[no-untyped-call]
            stack.outputs(x), uniform, layout, stack.spread.bounds, True
        )
        return unit, entropy
    raw, log_prob = stack.heads(x).sample(uniform)
    return stack.spread.to_unit(layout, raw), -log_prob


def _is_chain(actor: Any) -> bool:
    """Whether heads are numbers drawn one after the other, none of them under a condition."""
    layout = actor.layout
    return hasattr(actor, "draw_numbers") and not layout.num_choices and not layout.is_conditional


def _is_one_network(actor: Any) -> bool:
    """Whether all heads are known before one is drawn, and none depends on another."""
    return hasattr(actor, "outputs") and not actor.layout.is_conditional


def _options(heads: Heads, uniform: Tensor) -> tuple[Tensor | None, Tensor]:
    """Options drawn, (P, B, D), and the uniform numbers left to Ranges, (P, B, C, each)."""
    layout = heads.layout
    options = None
    if heads.log_probs is not None:
        options = pick_options(heads.log_probs, uniform[..., : layout.num_choices])
    rest = uniform[..., layout.num_choices :]
    return options, rest.view(*rest.shape[:-1], layout.num_ranges, -1) if heads.ranges else rest


def _entropy(heads: Heads, log_prob: Tensor) -> Tensor:
    layout = heads.layout
    if heads.log_probs is None:
        return -log_prob
    if heads.ranges is None:
        return heads.entropy()
    if layout.is_conditional:
        return torch.where(layout.is_choice, heads.entropy(), -log_prob)
    return layout.columns(heads.option_entropy(), -layout.range_columns(log_prob))


@torch.no_grad()
def _surprise(heads: Heads, raw: Tensor) -> Tensor | None:
    layout = heads.layout
    if not layout.is_conditional or heads.ranges is None:
        return None
    of_ranges = -heads.ranges.log_prob(layout.range_columns(raw))
    of_choices = torch.zeros(*raw.shape[:-1], layout.num_choices, device=raw.device)
    return layout.columns(of_choices, of_ranges)


def _can_fuse(actor: Any, obs: Tensor, legal: Tensor | None) -> bool:
    spread, layout = actor.spread, actor.layout
    plain = not layout.num_ranges or (spread.kind == "squashed" and spread.from_state)
    here = obs.device.type == "cuda" or is_compiled(obs)
    return plain and legal is None and here and layout.max_options <= FEW


def _drawn_at_once(actor: Any, obs: Tensor, uniform: Tensor) -> Drawn:
    unit, entropy, log_probs = _DrawHeads.apply(  # type: ignore[no-untyped-call]
        actor.outputs(obs), uniform, actor.layout, actor.spread.bounds, False
    )
    return Drawn(unit, entropy, log_probs if actor.layout.num_choices else None, None)


class _DrawHeads(torch.autograd.Function):
    """From a network's outputs to actions in one kernel, and one on the way back.

    In tensor operations it is about twenty, and as many on the way back. Outputs are (P, B, W), or
    stacked, (P, H, B, W): those of a network for each head, all of them Ranges. On the CPU the
    kernels are the compiled module's, which takes no stacks.
    """

    @staticmethod
    def forward(
        ctx: Any, outputs: Tensor, uniform: Tensor, layout: Layout, bounds: tuple[float, float],
        stacked: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        outputs, uniform = outputs.contiguous(), dense_rows(uniform)
        stack, options, numbers = uniform.shape[:-1], layout.num_choices, layout.num_ranges
        unit, entropy = torch.empty((2, *stack, layout.num_heads), device=outputs.device).unbind(0)
        log_probs = torch.empty((*stack, options, layout.max_options), device=outputs.device)
        spread = torch.empty((*stack, numbers), device=outputs.device)
        rows, half = stack.numel(), 0.5 * (bounds[1] - bounds[0])
        ctx.layout, ctx.half, ctx.grid = layout, half, (-(-rows // _ROWS), layout.num_heads)
        ctx.stacked = stacked
        ctx.sizes = (rows, stack[-1], outputs.shape[-1], options, numbers, layout.max_options)
        found = (unit, entropy, log_probs, spread)
        if outputs.device.type == "cpu":
            draw_heads(layout, outputs, uniform, bounds[0], half, found)
        else:
            from headwise.factorizations.kernels import soft_draw as soft_draw_kernel

            soft_draw_kernel.draw_heads[ctx.grid](
                outputs, uniform, uniform.stride(-2), layout.bounds, layout.choices, layout.ranges,
                *found, *ctx.sizes, bounds[0], half, STACKED=stacked, ROWS=_ROWS,
            )  # fmt: skip
        ctx.save_for_backward(outputs, *found)
        if not numbers:  # options have no gradient
            ctx.mark_non_differentiable(unit)
        ctx.set_materialize_grads(False)
        return unit, entropy, log_probs

    @staticmethod
    def backward(
        ctx: Any, by_unit: Tensor | None, by_entropy: Tensor | None, by_log_probs: Tensor | None
    ) -> tuple[Tensor, None, None, None, None]:
        saved, layout = ctx.saved_tensors, ctx.layout
        to_outputs = torch.empty_like(saved[0])
        if to_outputs.device.type == "cpu":
            slopes = (by_unit, by_entropy, by_log_probs)
            draw_heads_back(layout, saved, slopes, ctx.half, to_outputs)
            return to_outputs, None, None, None, None
        from headwise.factorizations.kernels import soft_draw as soft_draw_kernel

        given = [
            to_outputs if by is None else by.contiguous()  # what is not there is not read
            for by in (by_unit, by_entropy, by_log_probs)
        ]
        soft_draw_kernel.draw_heads_back[ctx.grid](
            *saved, *given, layout.bounds, layout.choices, layout.ranges, to_outputs,
            *ctx.sizes, ctx.half, UNIT=by_unit is not None, ENTROPY=by_entropy is not None,
            LOG_PROBS=by_log_probs is not None and layout.num_choices > 0, STACKED=ctx.stacked,
            ROWS=_ROWS,
        )  # fmt: skip
        return to_outputs, None, None, None, None
