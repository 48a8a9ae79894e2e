"""When products on the CPU are of numbers rounded to bfloat16, and on how many threads.

Only what is multiplied is rounded: products are summed in float32, and parameters, gradients,
biases and activations are float32. Torch's own products of bfloat16 would round their results as
well. A layer with few outputs, such as a value, is not rounded at all. `at_once` has the products.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
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
