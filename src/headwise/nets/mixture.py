"""The mixture ELU(A |W1|) |W2| of advantages (..., H), with weights of their own for every row.

On the CPU the compiled module does it in one pass over memory; elsewhere, and as its oracle, it is
made of tensor operations.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.population import elu


def mixture(advantage: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """The mixture (...) of advantages (..., H).

    Args:
        advantage: What is mixed, (..., H).
        first: W1 before its sign is dropped, (..., H * E).
        second: W2 before its sign is dropped, (..., E).
    """
    if not _is_compiled(advantage):
        return tensor_mixture(advantage, first, second)
    if not torch.is_grad_enabled():
        return _mix(advantage, first, second)[0]
    mixed: Tensor = _Mixture.apply(advantage, first, second)  # type: ignore[no-untyped-call]
    return mixed


def mixture_slope(advantage: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """How much each advantage counts where it is, (..., H): the mixture's derivatives by them.

    No gradient flows.
    """
    with torch.no_grad():
        if not _is_compiled(advantage):
            return tensor_slope(advantage, first, second)
        from headwise import _core

        _, hidden = _mix(advantage, first, second)
        slope = torch.empty_like(advantage, memory_format=torch.contiguous_format)
        _core.mix_slope(*_arrays(advantage, first, second, hidden, slope))
        return slope


def tensor_mixture(advantage: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """`mixture` in tensor operations."""
    by_head = first.abs().view(*advantage.shape, second.shape[-1])
    hidden = elu((advantage.unsqueeze(-1) * by_head).sum(-2))
    return (hidden * second.abs()).sum(-1)


def tensor_slope(advantage: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """`mixture_slope` in tensor operations."""
    by_head = first.abs().view(*advantage.shape, second.shape[-1])
    before = (advantage.unsqueeze(-1) * by_head).sum(-2)
    by_unit = second.abs() * before.clamp_max(0.0).exp()
    return (by_head * by_unit.unsqueeze(-2)).sum(-1)


class _Mixture(torch.autograd.Function):
    """The compiled mixture and its gradient."""

    @staticmethod
    def forward(ctx: Any, advantage: Tensor, first: Tensor, second: Tensor) -> Tensor:
        mixed, hidden = _mix(advantage, first, second)
        ctx.save_for_backward(advantage, first, second, hidden)
        return mixed

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        from headwise import _core

        saved = ctx.saved_tensors
        found = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in saved[:3]]
        advantage, first, second, hidden, *out = _arrays(*saved, *found)
        _core.mix_backward(
            advantage, first, second, hidden, grad.contiguous().view(-1).numpy(), *out
        )
        return tuple(found)


def _is_compiled(x: Tensor) -> bool:
    plain = x.device.type == "cpu" and x.dtype == torch.float32
    return plain and not torch.compiler.is_compiling()


def _mix(advantage: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """The mixture and its hidden units."""
    from headwise import _core

    mixed = torch.empty(advantage.shape[:-1])
    hidden = torch.empty_like(second, memory_format=torch.contiguous_format)
    a, f, s, h = _arrays(advantage, first, second, hidden)
    _core.mix(a, f, s, h, mixed.view(-1).numpy())
    return mixed, hidden


def _arrays(*tensors: Tensor) -> list[Any]:
    """Tensors (..., N) as the rows that the compiled module works on; a view if contiguous."""
    return [x.detach().contiguous().flatten(0, -2).numpy() for x in tensors]
