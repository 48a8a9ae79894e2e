"""What SAC and DQN do with actions on the CPU: one call of the compiled module each way.

In tensor operations each of these is a dozen or two, most of them over a handful of options, where
torch spends its time on everything but the numbers. Those are for other heads and devices, and the
oracle of these. Rows are independent, so a member alone is the same to the bit.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from headwise.factorizations.parts.heads import FEW
from headwise.factorizations.parts.join import Columns, dense_rows
from headwise.factorizations.parts.layout import Layout

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def is_compiled(x: Tensor) -> bool:
    """Whether the compiled module can take tensors like this one."""
    here = x.device.type == "cpu" and x.dtype == torch.float32
    return here and not torch.compiler.is_compiling()


def can_compile(layout: Layout, x: Tensor) -> bool:
    """Whether it can take these heads as well."""
    return 0 < layout.max_options <= FEW and not layout.is_conditional and is_compiled(x)


def draw_heads(
    layout: Layout,
    outputs: Tensor,
    uniform: Tensor,
    low: float,
    half: float,
    found: tuple[Tensor, Tensor, Tensor, Tensor],
) -> None:
    """What the kernel of `soft_draw.py` does, without a stack. No gradient.

    Args:
        layout: The heads, none of them under a condition.
        outputs: Mean and free spread of every Range, then logits of all options, (P, B, W).
        uniform: Uniform numbers, (P, B, H): those of Choices first.
        low: The least log standard deviation.
        half: Half of what the largest is above it.
        found: Where actions and entropies go, (P, B, H), log-probabilities (P, B, D, K), and how
            far numbers are from their means, (P, B, C).
    """
    from headwise import _core

    unit, entropy, log_probs, spread = found
    _core.draw_heads(
        _rows(outputs), _rows(uniform), *_tables(layout), low, half, _rows(unit), _rows(entropy),
        _padded(log_probs), _rows(spread),
    )  # fmt: skip


def draw_heads_back(
    layout: Layout,
    saved: tuple[Tensor, ...],
    slopes: tuple[Tensor | None, Tensor | None, Tensor | None],
    half: float,
    to_outputs: Tensor,
) -> None:
    """Backward of `draw_heads`: from its outputs, what was found, and three gradients."""
    from headwise import _core

    outputs, unit, entropy, log_probs, spread = saved
    by_unit, by_entropy, by_log_probs = slopes
    _core.draw_heads_back(
        _rows(outputs), _rows(unit), _rows(entropy), _padded(log_probs), _rows(spread),
        None if by_unit is None else _rows(by_unit.contiguous()),
        None if by_entropy is None else _rows(by_entropy.contiguous()),
        None if by_log_probs is None else _padded(by_log_probs.contiguous()),
        *_tables(layout), half, _rows(to_outputs),
    )  # fmt: skip


def embed_actions(columns: Columns, obs: Tensor, action: Tensor) -> Tensor:
    """Observations (P, B, O) beside embedded actions, (P, B, O + Z). No gradient."""
    from headwise import _core

    out = torch.empty(*obs.shape[:-1], obs.shape[-1] + len(columns.owner))
    _core.embed_actions(
        _rows(obs), _rows(action), columns.owner.numpy(), columns.table.numpy(), _rows(out)
    )
    return out


def relax_options(
    columns: Columns,
    layout: Layout,
    obs: Tensor,
    log_probs: Tensor,
    noise: Tensor,
    temperature: Tensor,
    unit: Tensor,
) -> Tensor:
    """The inputs of two critics, as `join.relaxed` has them, (P, 2, B, O + Z)."""
    out: Tensor = _RelaxOptions.apply(  # type: ignore[no-untyped-call]
        columns, layout, obs, log_probs, noise, temperature, unit
    )
    return out


def soft_options(
    layout: Layout, value: Tensor, flat: Tensor, alpha: Tensor
) -> tuple[Tensor, Tensor]:
    """The soft value in closed form (P, B), and the entropies of the Choice heads (P, B, D).

    The value is the lesser critic's V plus every head's t log sum exp(A / t), the best A being
    zero. Entropies are the first critic's; no gradient flows through them.

    Args:
        layout: The heads.
        value: V, (P, 2, B).
        flat: Advantages of all options, (P, 2, B, total); they need not be centred.
        alpha: One temperature for each head of each member, (P, H).
    """
    found: tuple[Tensor, Tensor] = _SoftOptions.apply(  # type: ignore[no-untyped-call]
        value, flat, alpha, layout
    )
    return found


def centre_options(
    layout: Layout, value: Tensor | None, flat: Tensor, taken: Tensor, *, sums: bool
) -> Tensor:
    """V, if there is one, plus advantages relative to their head's best.

    Args:
        layout: The heads.
        value: V, (...).
        flat: Advantages of all options, (..., total).
        taken: The options whose advantages are asked for, (..., D).
        sums: Whether advantages are added up, (..., 1), or one each, (..., D).
    """
    out: Tensor = _CentreOptions.apply(  # type: ignore[no-untyped-call]
        value, flat, taken, layout, sums
    )
    return out


def lesser_worth(
    values: Tensor, entropy: Tensor | None, alpha: Tensor, out: Tensor, which: Tensor
) -> None:
    """What the kernel of `worth.py` does: the lesser of twins (P, 2, ...) goes to out (P, ...)."""
    from headwise import _core

    random = None if entropy is None else entropy.detach().contiguous().numpy()
    _core.lesser_worth(
        values.detach().flatten(2).numpy(), random, alpha.numpy(), out.flatten(1).numpy(),
        which.flatten(1).numpy(),
    )  # fmt: skip


def lesser_worth_back(
    grad: Tensor, alpha: Tensor, which: Tensor, to_values: Tensor, to_entropy: Tensor
) -> None:
    """Backward of `lesser_worth`."""
    from headwise import _core

    random = to_entropy.numpy() if alpha.shape[-1] else None
    _core.lesser_worth_back(
        grad.contiguous().flatten(1).numpy(), alpha.numpy(), which.flatten(1).numpy(),
        to_values.flatten(2).numpy(), random,
    )  # fmt: skip


class _RelaxOptions(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, columns: Columns, layout: Layout, obs: Tensor, log_probs: Tensor, noise: Tensor,
        temperature: Tensor, unit: Tensor,
    ) -> Tensor:  # fmt: skip
        from headwise import _core

        out = torch.empty(*obs.shape[:-1], obs.shape[-1] + len(columns.owner))
        soft = torch.empty(log_probs.shape)
        bounds, choices, ranges = _tables(layout)
        places, table = columns.column_of.numpy(), columns.table.numpy()
        softness = float(temperature)
        _core.relax_options(
            _padded(log_probs.contiguous()), bounds, _rows(noise), softness, _rows(obs),
            _rows(unit), places, choices, ranges, table, _padded(soft), _rows(out),
        )  # fmt: skip
        ctx.given, ctx.shape = (bounds, softness, places, choices, ranges, table), unit.shape
        ctx.save_for_backward(soft)
        return out.unsqueeze(-3).expand(*out.shape[:-2], 2, *out.shape[-2:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from headwise import _core

        (soft,) = ctx.saved_tensors
        to_log_probs = torch.empty(soft.shape)
        to_unit = torch.empty(ctx.shape) if ctx.needs_input_grad[-1] else None
        bounds, softness, places, choices, ranges, table = ctx.given
        _core.relax_options_back(
            grad.contiguous().numpy(), _padded(soft), bounds, softness, places, choices, ranges,
            table, _padded(to_log_probs), None if to_unit is None else _rows(to_unit),
        )  # fmt: skip
        return None, None, None, to_log_probs, None, None, to_unit


class _SoftOptions(torch.autograd.Function):
    """Of equally good options the first is the best, of equally hopeful critics the first."""

    @staticmethod
    def forward(
        ctx: Any, value: Tensor, flat: Tensor, alpha: Tensor, layout: Layout
    ) -> tuple[Tensor, Tensor]:
        from headwise import _core

        members, rows = value.shape[0], value.shape[-1]
        total, entropy = torch.empty(members, rows), torch.empty(members, rows, layout.num_choices)
        which = torch.empty(members, rows, dtype=torch.int32)
        flat, alpha = flat.contiguous(), alpha.contiguous()
        bounds, choices = _tables(layout)[:2]
        _core.soft_branches(
            flat.numpy(), value.contiguous().numpy(), bounds, choices, alpha.numpy(),
            total.numpy(), entropy.numpy(), which.numpy(),
        )  # fmt: skip
        ctx.save_for_backward(flat, alpha, which)
        ctx.layout = layout
        ctx.mark_non_differentiable(entropy)
        ctx.set_materialize_grads(False)
        return total, entropy

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        from headwise import _core

        flat, alpha, which = ctx.saved_tensors
        members, rows = which.shape
        to_value, to_flat = torch.empty(members, 2, rows), torch.empty(flat.shape)
        bounds, choices = _tables(ctx.layout)[:2]
        _core.soft_branches_back(
            grad.contiguous().numpy(), which.numpy(), flat.detach().numpy(), bounds, choices,
            alpha.numpy(), to_value.numpy(), to_flat.numpy(),
        )  # fmt: skip
        return to_value, to_flat, None, None


class _CentreOptions(torch.autograd.Function):
    """Of equally good options the first is the best."""

    @staticmethod
    def forward(
        ctx: Any, value: Tensor | None, flat: Tensor, taken: Tensor, layout: Layout, sums: bool
    ) -> Tensor:
        from headwise import _core

        stack, heads = flat.shape[:-1], layout.num_choices
        taken = taken.float().contiguous().flatten(0, -2)
        out = torch.empty(*stack, 1 if sums else heads)
        best = torch.empty(taken.shape, dtype=torch.int32)
        bounds = layout.bounds.numpy()
        _core.centre_options(
            None if value is None else value.contiguous().flatten().numpy(),
            _rows(flat.contiguous()), taken.numpy(), bounds, _rows(out), best.numpy(),
        )  # fmt: skip
        ctx.save_for_backward(taken, best)
        ctx.bounds, ctx.shape, ctx.has_value = bounds, flat.shape, value is not None
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from headwise import _core

        taken, best = ctx.saved_tensors
        to_flat = torch.empty(ctx.shape)
        _core.centre_options_back(
            _rows(grad.contiguous()), taken.numpy(), best.numpy(), ctx.bounds, _rows(to_flat),
        )  # fmt: skip
        to_value = None
        if ctx.has_value:
            to_value = grad.squeeze(-1) if grad.shape[-1] == 1 else grad.sum(-1)
        return to_value, to_flat, None, None, None


def _rows(x: Tensor) -> Array:
    """The same numbers as rows (N, F), without a copy where they are equally far apart."""
    return dense_rows(x).detach().flatten(0, -2).numpy()


def _padded(x: Tensor) -> Array:
    """Numbers of options (..., D, K) as (N, D, K)."""
    return x.detach().flatten(0, -3).numpy()


def _tables(layout: Layout) -> tuple[Array, Array, Array]:
    return layout.bounds.numpy(), layout.choices.numpy(), layout.ranges.numpy()
