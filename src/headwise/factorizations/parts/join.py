"""Observations and embedded actions side by side, for several networks at once: on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from headwise.factorizations.parts.layout import Layout
from headwise.population import even_rows

_BLOCK, _ROWS = 256, 64


@dataclass(frozen=True)
class Columns:
    """What each number of an embedding (Z) is made of, as tensors on the device."""

    owner: Tensor
    """The head that it shows, (Z,)."""
    match: Tensor
    """The option of that head for which it is one, (Z,); -1 where it is a number."""
    scale: Tensor
    """What a number is multiplied with, (Z,)."""
    shift: Tensor
    """What is then added, (Z,)."""
    column_of: Tensor
    """Where each head's numbers begin, (H,)."""

    @cached_property
    def table(self) -> Tensor:
        """Match, scale and shift, (3, Z)."""
        return torch.stack([self.match, self.scale, self.shift])

    @classmethod
    def of_numbers(cls, count: int, device: torch.device) -> Columns:
        """Numbers as they are."""
        each, one = torch.arange(count, device=device), torch.ones(count, device=device)
        return cls(each, -one, one, torch.zeros_like(one), each)


def can_join(obs: Tensor) -> bool:
    """Whether `joined` can take these observations."""
    return obs.device.type == "cuda" and obs.dim() == 3 and not obs.requires_grad


def joined(columns: Columns, obs: Tensor, action: Tensor, visible: Tensor) -> Tensor:
    """Inputs (P, N, B, O + Z) from observations (P, B, O) and actions (P, B, H), as one kernel.

    Args:
        columns: How actions are embedded.
        obs: The observations.
        action: The actions, in the learner's form.
        visible: Which numbers of the embedding each of N networks may see, (N, Z).
    """
    out: Tensor = _Joined.apply(columns, obs, action, visible)  # type: ignore[no-untyped-call]
    return out


def joined_on(
    columns: Columns, obs: Tensor, action: Tensor, visible: Tensor
) -> tuple[Tensor, Tensor]:
    """`joined`, and the actions to go on with: their gradient is added in the backward pass."""
    if not (torch.is_grad_enabled() and action.requires_grad):
        return joined(columns, obs, action, visible), action
    found: tuple[Tensor, Tensor] = _JoinedOn.apply(  # type: ignore[no-untyped-call]
        columns, obs, action, visible
    )
    return found


def joined_each(obs: Tensor, numbers: Tensor, copies: int) -> Tensor:
    """Inputs (P, N, C, B, O + 1) of networks that see one of the numbers (P, B, C) each."""
    out: Tensor = _JoinedEach.apply(obs, numbers, copies)  # type: ignore[no-untyped-call]
    return out


def relaxed(
    columns: Columns,
    layout: Layout,
    obs: Tensor,
    log_probs: Tensor,
    noise: Tensor,
    temperature: Tensor,
    unit: Tensor,
) -> Tensor:
    """`joined` for two critics, with options that pass gradients on as if they were relaxed.

    Args:
        columns: How actions are embedded.
        layout: The heads, none of them under a condition.
        obs: The observations, (P, B, O).
        log_probs: Of the options, (P, B, D, K).
        noise: Uniform numbers, (P, B, D * K).
        temperature: How soft options are.
        unit: Actions (P, B, H), of which the numbers are taken.
    """
    out: Tensor = _Relaxed.apply(  # type: ignore[no-untyped-call]
        columns, layout, obs, log_probs, noise, temperature, unit
    )
    return out


class _Joined(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, columns: Columns, obs: Tensor, action: Tensor, visible: Tensor) -> Tensor:
        from headwise.factorizations.kernels.join import join

        obs, action, visible = dense_rows(obs), dense_rows(action), visible.contiguous()
        (members, rows, obs_size), (copies, embedded) = obs.shape, visible.shape
        out = torch.empty(members, copies, rows, obs_size + embedded, device=obs.device)
        ctx.columns, ctx.sizes = columns, (copies, rows, obs_size, embedded)
        join[(-(-out.numel() // _BLOCK),)](
            obs, action, visible, columns.owner, columns.match, columns.scale, columns.shift,
            out, obs.stride(-2), action.stride(-2), out.numel(), *ctx.sizes, BLOCK=_BLOCK,
        )  # fmt: skip
        ctx.save_for_backward(visible)
        ctx.shape = action.shape
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor, None]:
        return None, None, _to_action(ctx, grad, None), None


class _JoinedOn(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, columns: Columns, obs: Tensor, action: Tensor, visible: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        return _Joined.forward(ctx, columns, obs, action, visible), action.view_as(action)

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor, by_action: Tensor | None
    ) -> tuple[None, None, Tensor, None]:
        return None, None, _to_action(ctx, grad, by_action), None


def _to_action(ctx: Any, grad: Tensor, by_action: Tensor | None) -> Tensor:
    from headwise.factorizations.kernels.join import join_back

    (visible,), columns = ctx.saved_tensors, ctx.columns
    to_action = torch.empty(ctx.shape, device=grad.device)
    more = grad if by_action is None else by_action.contiguous()  # what is not there is not read
    join_back[(-(-to_action.numel() // _BLOCK),)](
        grad.contiguous(), visible, columns.column_of, columns.match, columns.scale, more,
        to_action, to_action.numel(), *ctx.sizes, to_action.shape[-1], ADD=by_action is not None,
        BLOCK=_BLOCK,
    )  # fmt: skip
    return to_action


class _JoinedEach(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, obs: Tensor, numbers: Tensor, copies: int) -> Tensor:
        from headwise.factorizations.kernels.join import join_own

        obs, numbers = dense_rows(obs), dense_rows(numbers)
        (members, rows, obs_size), columns = obs.shape, numbers.shape[-1]
        out = torch.empty(members, copies, columns, rows, obs_size + 1, device=obs.device)
        ctx.sizes, ctx.shape = (copies, rows, obs_size, columns), numbers.shape
        join_own[(-(-out.numel() // _BLOCK),)](
            obs, numbers, out, obs.stride(-2), numbers.stride(-2), out.numel(), *ctx.sizes,
            BLOCK=_BLOCK,
        )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        from headwise.factorizations.kernels.join import join_own_back

        to_numbers = torch.empty(ctx.shape, device=grad.device)
        join_own_back[(-(-to_numbers.numel() // _BLOCK),)](
            grad.contiguous(), to_numbers, to_numbers.numel(), *ctx.sizes, BLOCK=_BLOCK
        )
        return None, to_numbers, None


class _Relaxed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, columns: Columns, layout: Layout, obs: Tensor, log_probs: Tensor, noise: Tensor,
        temperature: Tensor, unit: Tensor,
    ) -> Tensor:  # fmt: skip
        from headwise.factorizations.kernels.join import relax_join

        obs, unit, noise = dense_rows(obs), dense_rows(unit), dense_rows(noise)
        (members, rows, obs_size), embedded = obs.shape, len(columns.owner)
        out = torch.empty(members, 2, rows, obs_size + embedded, device=obs.device)
        soft = torch.empty(log_probs.shape, device=obs.device)
        num_ranges, most = layout.num_ranges, layout.max_options
        ctx.tables = (
            layout.bounds, layout.choices, layout.ranges, columns.column_of, columns.match,
            columns.scale,
        )  # fmt: skip
        ctx.sizes = (rows, obs_size, embedded, layout.num_choices, num_ranges, most)
        ctx.shapes = log_probs.shape, unit.shape
        relax_join[(members * rows,)](
            log_probs.contiguous(), noise, temperature, obs, unit, *ctx.tables, columns.shift,
            soft, out, noise.stride(-2), obs.stride(-2), unit.stride(-2), *ctx.sizes,
            OBS=1 << (obs_size - 1).bit_length(), MOST=1 << (most - 1).bit_length(),
            RANGES=1 << (max(num_ranges, 1) - 1).bit_length(), num_warps=1,
        )  # fmt: skip
        ctx.save_for_backward(soft, temperature)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from headwise.factorizations.kernels.join import relax_join_back

        soft, temperature = ctx.saved_tensors
        of_log_probs, of_unit = ctx.shapes
        to_log_probs = torch.empty(of_log_probs, device=grad.device)
        to_unit = torch.empty(of_unit, device=grad.device)
        rows = of_unit[:-1].numel()
        relax_join_back[(-(-rows // _ROWS), of_unit[-1])](
            grad.contiguous(), soft, temperature, *ctx.tables, to_log_probs, to_unit, rows,
            *ctx.sizes, ROWS=_ROWS,
        )  # fmt: skip
        return None, None, None, to_log_probs, None, None, to_unit


def dense_rows(x: Tensor) -> Tensor:
    """The same numbers (P, B, F) with rows equally far apart, each without gaps."""
    x = even_rows(x)
    return x if x.stride(-1) == 1 else x.contiguous()
