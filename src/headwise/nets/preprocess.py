"""From rows of words to the leaves of an observation, in the shapes that its space has."""

from __future__ import annotations

from typing import TypeAlias

import torch
from torch import Tensor

from headwise.spaces import ObsSpec

Seen: TypeAlias = Tensor | dict[str, Tensor]
"""Observations as rows of float32 words, (..., W), or as their leaves by path, as `leaves_of` gives
them: exported policies are given leaves, because their graphs cannot take words apart."""


def leaves_of(rows: Seen, spec: ObsSpec) -> dict[str, Tensor]:
    """The leaves of observations by their paths.

    Args:
        rows: Rows of float32 words, (..., spec.size); or the leaves, which stay as they are.
        spec: What is where.

    Returns:
        (..., *shape) for numbers, bytes where a leaf is packed; (..., options) for categories,
        one-hot; the rows themselves for a plain vector.
    """
    if isinstance(rows, dict):
        return rows
    if not spec.leaves:
        return {name: rows[..., where] for name, where in spec.slices.items()}
    found = {}
    for leaf in spec.leaves:
        words = rows[..., spec.slices[leaf.path]]
        if leaf.is_packed:
            count = int(torch.Size(leaf.shape).numel())
            words = words.contiguous().view(torch.uint8)[..., :count]
        if leaf.counts is None:
            words = words.reshape(*words.shape[:-1], *leaf.shape)
        found[leaf.path] = words
    return found


def vector_of(rows: Seen, spec: ObsSpec) -> Tensor:
    """Observations as vectors of numbers, (..., spec.vector_size): bytes divided by 255.

    Rows without a packed leaf are such vectors, and stay as they are.
    """
    if isinstance(rows, Tensor) and not spec.packed:
        return rows
    found, parts = leaves_of(rows, spec), []
    for leaf in spec.leaves:
        x = found[leaf.path]
        if leaf.counts is None:
            x = x.flatten(-len(leaf.shape)) if leaf.shape else x.unsqueeze(-1)
        parts.append(x.float() / 255.0 if leaf.is_packed else x)
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)


def words_of(rows: Seen, spec: ObsSpec) -> Tensor:
    """Observations as an encoder reads them: rows of words as they are.

    Leaves, which an exported policy is given, become rows of numbers, (..., spec.vector_size),
    bytes as what they count: `numbered_leaves_of` takes them apart again.
    """
    if isinstance(rows, Tensor):
        return rows
    parts = []
    for leaf in spec.leaves:
        x = rows[leaf.path]
        if leaf.counts is None:
            x = x.flatten(-len(leaf.shape)) if leaf.shape else x.unsqueeze(-1)
        parts.append(x.float())
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)


def numbered_leaves_of(rows: Tensor, spec: ObsSpec) -> dict[str, Tensor]:
    """The leaves in rows of numbers, as `words_of` made them of leaves."""
    found, start = {}, 0
    for leaf in spec.leaves:
        where = spec.slices[leaf.path]
        size = where.stop - where.start
        if leaf.is_packed:
            size = int(torch.Size(leaf.shape).numel())
        x = rows[..., start : start + size]
        found[leaf.path] = x if leaf.counts is not None else x.reshape(*x.shape[:-1], *leaf.shape)
        start += size
    return found
