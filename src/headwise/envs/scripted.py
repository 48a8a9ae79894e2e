"""What policies written by hand share: what a good player scores, without learning.

They read observations and nothing else, and answer for all slots at once: observations (n, O) to
actions (n, H) in the learner's form. Each works in every view of its environment, and is in the
environment's own file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwise.spaces import ActionSpec, Choice

Floats: TypeAlias = NDArray[np.floating[Any]]
Policy: TypeAlias = Callable[[Floats], NDArray[np.float32]]
Settings: TypeAlias = Mapping[str, Any]
PolicyFactory: TypeAlias = Callable[[ActionSpec, Settings], Policy]
"""From the action spec of a view and the environment's settings to the policy for it."""


def in_view(intent: Floats, native: ActionSpec, spec: ActionSpec) -> NDArray[np.float32]:
    """Native actions (n, H) as those of a view, in the learner's form.

    A number that must be an option becomes the nearest bin, an option that must be a number the
    middle of its part of the range.
    """
    columns = []
    for column, want, have in zip(intent.T, native.heads, spec.heads, strict=True):
        if isinstance(want, Choice):
            as_number = (2.0 * column + 1.0) / want.n - 1.0
            columns.append(column if isinstance(have, Choice) else as_number)
        else:
            share = (column - want.low) / (want.high - want.low)
            bins = have.n - 1 if isinstance(have, Choice) else 0
            columns.append(np.rint(share * bins) if bins else 2.0 * share - 1.0)
    return np.stack(columns, axis=-1).astype(np.float32)
