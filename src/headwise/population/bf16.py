"""Layers on the CPU whose products are of numbers rounded to bfloat16, by the compiled module.

Only what is multiplied is rounded: products are summed in float32, and parameters, gradients,
biases and activations are float32. Torch's own products of bfloat16 would round their results as
well. A layer with few outputs, such as a value, is not rounded at all. One matrix of a stack is
worked on by one thread, so a member rounds the same in any population.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_here = threading.local()


@cache
def has_bf16() -> bool:
    """Whether this machine's processor multiplies numbers in bfloat16."""
    from headwise import _core

    return _core.has_bf16()


def fits(x: Tensor) -> bool:
    """Whether a layer's inputs are to be multiplied in bfloat16.

    Torch has a word for that precision, "medium". All products of layers are then ours, also those
    that are too small to gain: torch's own would be of another kind for one matrix than for many.
    """
    return (
        wanted()
        and x.device.type == "cpu"
        and x.dtype == torch.float32
        and not torch.compiler.is_compiling()
    )


def wanted() -> bool:
    """Whether products on the CPU are to be of bfloat16, and can be."""
    return torch.get_float32_matmul_precision() == "medium" and has_bf16()


@contextmanager
def threads_of_its_own(count: int) -> Iterator[None]:
    """Products are spread over so many threads, however many torch has; otherwise as many as it.

    Torch's threads keep their cores busy for a while after each operation, waiting for the next.
    """
    before = getattr(_here, "threads", None)
    _here.threads = count
    try:
        yield
    finally:
        _here.threads = before


def threads_now() -> int:
    """How many threads products are spread over."""
    return getattr(_here, "threads", None) or torch.get_num_threads()


def forward(x: Tensor, weight: Tensor, bias: Tensor, then: str | None) -> Tensor:
    """X W + b (N, B, out) and an activation, relu or tanh."""
    from headwise import _core

    out = torch.empty(*x.shape[:-1], weight.shape[-1])
    _core.bf16_forward(
        _rows(x),
        weight.detach().numpy(),
        bias.detach().numpy(),
        out.numpy(),
        then,
        threads_now(),
    )
    return out


def backward(
    grad: Tensor,
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    to_weight: Tensor | None,
    to_bias: Tensor | None,
    then: str | None,
    *,
    need_x: bool,
) -> Tensor | None:
    """The gradient by x (N, B, in) if it is needed; adds to those of the parameters where given.

    Args:
        grad: The gradient by what came out, (N, B, out).
        out: What came out, activated.
        x: What went in.
        weight: The matrices.
        to_weight: Where their gradient is added up, (N, in, out).
        to_bias: Where that of the biases is, (N, 1, out).
        then: The activation: relu, tanh, elu or none.
        need_x: Whether the gradient by x is needed.
    """
    from headwise import _core

    to_x = torch.empty(x.shape) if need_x else None
    _core.bf16_backward(
        grad.numpy(),
        out.detach().numpy(),
        _rows(x),
        weight.detach().numpy(),
        None if to_x is None else to_x.numpy(),
        None if to_weight is None else to_weight.numpy(),
        None if to_bias is None else to_bias.numpy(),
        then,
        threads_now(),
    )
    return to_x


def _rows(x: Tensor) -> NDArray[np.float32]:
    """An array with contiguous rows, which may be some columns of longer ones."""
    x = x.detach()
    rows: NDArray[np.float32] = (x if x.stride(-1) == 1 else x.contiguous()).numpy()
    return rows
