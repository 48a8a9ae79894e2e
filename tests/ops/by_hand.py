"""Operations on numbers written by hand: what they make of them, and the gradients they return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from headwise.ops import Buffer, Operation


def buffer(x: Tensor, *, gradient: bool = False) -> Buffer:
    """Numbers (P, C, B, W) in a buffer."""
    made = Buffer(x.shape[0], x.shape[2], x.shape[3], copies=x.shape[1], gradient=gradient)
    made.tensor.copy_(x)
    return made


def column(*values: float) -> Tensor:
    """One member, a number in each row: (1, 1, B, 1)."""
    return torch.tensor(values, dtype=torch.float32).view(1, 1, -1, 1)


def rows(*values: Sequence[float]) -> Tensor:
    """One member, several numbers in each row: (1, 1, B, W)."""
    return torch.tensor(values, dtype=torch.float32)[None, None]


def one(value: float) -> Tensor:
    """A setting of one member, (1, 1, 1, 1)."""
    return torch.full((1, 1, 1, 1), float(value))


def ticks(*counts: int) -> Tensor:
    """A clock for each member, (P, 1, 1, 2): the bits of whole numbers."""
    return torch.tensor(counts).view(-1, 1, 1, 1).view(torch.float32)


def result(operation: Operation, *inputs: Tensor | None, **settings: Any) -> Tensor:
    """What an operation with one output writes."""
    return played(operation, *inputs, **settings)[0]


def played(
    operation: Operation,
    *inputs: Tensor | None,
    learns: Sequence[int] = (),
    slope: Tensor | None = None,
    **settings: Any,
) -> tuple[Tensor, ...]:
    """What an operation with one output writes, and the gradients of those inputs that learn.

    Args:
        operation: The operation.
        inputs: (P, C, B, W) each, or None.
        learns: The numbers of the inputs that have room for a gradient.
        slope: The gradient of the output; ones if it is left out.
        settings: By name.
    """
    given = [None if x is None else buffer(x, gradient=i in learns) for i, x in enumerate(inputs)]
    shape = operation.definition(*inputs, **settings).shape
    out = Buffer(shape[0], shape[2], shape[3], copies=shape[1], gradient=bool(learns))
    operation(*given, out=out, **settings)
    if learns:
        out.gradient.copy_(torch.ones(shape) if slope is None else slope)
        operation.backward(*given, out=out, **settings)
    gradients = [x.gradient.clone() for i in learns if (x := given[i]) is not None]
    return out.tensor.clone(), *gradients
