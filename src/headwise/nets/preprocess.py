"""From rows of words to the leaves of an observation, in the shapes that its space has."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.spaces import ObsSpec


def leaves_of(rows: Tensor, spec: ObsSpec) -> dict[str, Tensor]:
    """The leaves of observations by their paths.

    Args:
        rows: Rows of float32 words, (..., spec.size).
        spec: What is where.

    Returns:
        (..., *shape) for numbers, bytes where a leaf is packed; (..., options) for categories,
        one-hot; the rows themselves for a plain vector.
    """
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
