"""The mixture ELU(A |W1|) |W2| of advantages (..., H), with weights of their own for every row.

On the CPU the compiled module does it in one pass over memory, and on CUDA a Triton kernel;
elsewhere, and as their oracle, it is made of tensor operations.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.population import elu
from headwise.population.warps import warps_for


def mixture(advantage: Tensor, first: Tensor, second: Tensor, base: Tensor | None = None) -> Tensor:
    """The mixture (...) of advantages (..., H).

    Args:
        advantage: What is mixed, (..., H).
        first: W1 before its sign is dropped, (..., H * E).
        second: W2 before its sign is dropped, (..., E).
        base: What the mixture is added to, (...), if anything.
    """
    if _is_kernel(advantage):
        with_base: Tensor = _MixtureKernels.apply(advantage, first, second, base)  # type: ignore[no-untyped-call]
        return with_base
    if not _is_compiled(advantage):
        mixed = tensor_mixture(advantage, first, second)
    elif torch.is_grad_enabled():
        mixed = _Mixture.apply(advantage, first, second)  # type: ignore[no-untyped-call]
    else:
        mixed = _mix(advantage, first, second)[0]
    return mixed if base is None else base + mixed


def mixture_slope(advantage: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """How much each advantage counts where it is, (..., H): the mixture's derivatives by them.

    No gradient flows.
    """
    with torch.no_grad():
        if _is_kernel(advantage):
            return _slope_kernel(advantage, first, second)
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


class _MixtureKernels(torch.autograd.Function):
    """The mixture as two Triton kernels: one forward, one backward."""

    @staticmethod
    def forward(
        ctx: Any, advantage: Tensor, first: Tensor, second: Tensor, base: Tensor | None
    ) -> Tensor:
        from headwise.nets.kernels.mixture import mix

        advantage, first, second = (x.contiguous() for x in (advantage, first, second))
        hidden = torch.empty_like(second)
        mixed = torch.empty(advantage.shape[:-1], device=advantage.device)
        mix[(mixed.numel(),)](
            advantage, first, second, mixed if base is None else base.contiguous(), hidden, mixed,
            *_sizes(advantage, second), BASE=base is not None, **_units(second),
        )  # fmt: skip
        ctx.save_for_backward(advantage, first, second, hidden)
        return mixed

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from headwise.nets.kernels.mixture import mix_back

        advantage, first, second, hidden = ctx.saved_tensors
        grad = grad.contiguous()
        found = [torch.empty_like(x) for x in (advantage, first, second)]
        mix_back[(grad.numel(),)](
            grad, advantage, first, second, hidden, *found,
            *_sizes(advantage, second), **_units(second),
        )  # fmt: skip
        return *found, grad if ctx.needs_input_grad[3] else None


def _slope_kernel(advantage: Tensor, first: Tensor, second: Tensor) -> Tensor:
    from headwise.nets.kernels.mixture import mix_slope

    advantage, first, second = (x.contiguous() for x in (advantage, first, second))
    slope = torch.empty_like(advantage)
    mix_slope[(second[..., 0].numel(),)](
        advantage, first, second, slope, *_sizes(advantage, second), **_units(second)
    )
    return slope


def _is_kernel(x: Tensor) -> bool:
    return x.device.type == "cuda" and x.dtype == torch.float32


def _sizes(advantage: Tensor, second: Tensor) -> tuple[int, int]:
    return advantage.shape[-1], second.shape[-1]


def _units(second: Tensor) -> dict[str, int]:
    units = 1 << (second.shape[-1] - 1).bit_length()
    return {"UNITS": units, "num_warps": warps_for(units)}


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
