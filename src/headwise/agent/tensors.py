"""Observations and masks that come as tensors of torch, or hold some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from headwise.errors import SpaceError


def without_tensors(value: Any) -> Any:
    """The same structure with arrays of NumPy where it had tensors, from whatever device.

    NumPy knows no gradients and no bfloat16, so the former are left behind, and the latter become
    float32, which holds all of their values.
    """
    if isinstance(value, torch.Tensor):
        return _as_array(value)
    if isinstance(value, Mapping):
        return {key: without_tensors(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(without_tensors, value))
    return value


def _as_array(tensor: torch.Tensor) -> Any:
    try:
        dense = tensor.detach().to_dense() if tensor.layout != torch.strided else tensor.detach()
        here = dense.cpu()
        return (here.float() if here.dtype == torch.bfloat16 else here).numpy()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise SpaceError(
            "this tensor has no numbers that can be read",
            got=f"{tensor.dtype} on {tensor.device} of shape {tuple(tensor.shape)}",
            allowed="tensors of numbers on a CPU or a GPU",
        ) from error
