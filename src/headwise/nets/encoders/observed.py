"""What modules see of observations: leaves as numbers, images in [0, 1], categories one-hot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from headwise.nets.preprocess import leaves_of, numbered_leaves_of
from headwise.ops.buffers import Trace
from headwise.spaces import ObsSpec
from headwise.spaces.observation import ObsLeaf

_IMAGE_RANK = 3


def image_scale(leaf: ObsLeaf) -> float | None:
    """What the numbers of an image are divided by; None for a leaf that is no image."""
    if leaf.counts is not None or len(leaf.shape) != _IMAGE_RANK:
        return None
    if leaf.dtype in ("uint8", "bool"):
        return leaf.high if 0.0 < leaf.high < math.inf else 1.0
    return leaf.high if leaf.low == 0.0 and leaf.high in (1.0, 255.0) else None


def _scale(leaf: ObsLeaf) -> float:
    """What the numbers of a leaf are divided by: images, and tables of packed bytes."""
    return image_scale(leaf) or (leaf.high if leaf.is_packed else 1.0)


def is_bytes(leaf: ObsLeaf) -> bool:
    """Whether nothing but its space says of what size its numbers are."""
    return leaf.dtype in ("uint8", "bool")


def read(rows: Tensor, spec: ObsSpec, *, normalized: bool) -> dict[str, Tensor]:
    """The leaves of rows (..., W) in float32, each as it is but for images.

    Args:
        rows: The observations.
        spec: What is where.
        normalized: Whether numbers were brought to a common size before; bytes never are.
    """
    numbers = Trace.now is not None and bool(spec.packed)
    found = numbered_leaves_of(rows, spec) if numbers else leaves_of(rows, spec)
    for leaf in spec.leaves:
        scale, x = _scale(leaf), found[leaf.path]
        if x.dtype != torch.float32:
            x = x.float()
        if scale != 1.0 and (is_bytes(leaf) or not normalized):
            x = x / scale
        found[leaf.path] = x
    return found


def shifted(
    leaves: dict[str, Tensor], spec: ObsSpec, uniform: Tensor, most: int
) -> dict[str, Tensor]:
    """Leaves (P, B, ...) with each image moved by up to so many pixels, its edges repeated.

    Args:
        leaves: As `read` gives them.
        spec: What they are.
        uniform: Numbers (P, B, 2), down and to the right.
        most: The most pixels.
    """
    by = (uniform * (2 * most + 1)).floor().long() - most
    found = dict(leaves)
    for leaf in spec.leaves:
        if image_scale(leaf) is None:
            continue
        x = found[leaf.path]
        first = -3 if leaf.shape[0] >= leaf.shape[-1] else -2
        for axis, move in zip((first, first + 1), by.unbind(-1), strict=True):
            size = x.shape[axis]
            at = torch.arange(size, device=x.device) + move.unsqueeze(-1)
            shape = [*x.shape[:-3], 1, 1, 1]
            shape[axis] = size
            x = torch.take_along_dim(x, at.clamp(0, size - 1).view(shape), dim=axis)
        found[leaf.path] = x
    return found


def structured(leaves: dict[str, Tensor], spec: ObsSpec) -> Any:
    """Leaves in the structure that the space has: a tensor, or dicts and tuples of them."""
    if not spec.leaves or not spec.leaves[0].keys:
        return next(iter(leaves.values()))
    whole: dict[Any, Any] = {}
    for leaf in spec.leaves:
        *above, last = leaf.keys
        at = whole
        for key in above:
            at = at.setdefault(key, {})
        at[last] = leaves[leaf.path]
    return _tuples(whole)


def _tuples(x: Any) -> Any:
    if not isinstance(x, dict):
        return x
    parts = {key: _tuples(one) for key, one in x.items()}
    return tuple(parts.values()) if list(parts) == list(range(len(parts))) else parts


def example(spec: ObsSpec, rows: int) -> dict[str, Tensor]:
    """Leaves (rows, ...) as `read` gives them, of numbers that the space allows."""
    chance = torch.Generator().manual_seed(0)
    if not spec.leaves:
        return {name: torch.randn(rows, spec.size, generator=chance) for name in spec.slices}
    found = {}
    for leaf in spec.leaves:
        if leaf.counts is not None:
            x = torch.zeros(rows, sum(leaf.counts))
            firsts = np.cumsum([0, *leaf.counts[:-1]])
            x[:, firsts] = 1.0
        elif math.isfinite(leaf.low) and math.isfinite(leaf.high):
            scale = _scale(leaf)
            low, high = leaf.low / scale, leaf.high / scale
            x = low + (high - low) * torch.rand(rows, *leaf.shape, generator=chance)
        else:
            x = torch.randn(rows, *leaf.shape, generator=chance).clamp(leaf.low, leaf.high)
        found[leaf.path] = x
    return found


def space_of(spec: ObsSpec) -> Any:
    """The space of observations; that of a plain vector has no bounds."""
    return spaces.Box(-np.inf, np.inf, (spec.size,)) if spec.space is None else spec.space
