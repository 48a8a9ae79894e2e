"""All joint actions of a spec in a row."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from headwise.spaces import ActionSpec


class JointActions:
    """All joint actions of discrete heads in a row: the last head turns fastest.

    An action whose idle heads are not at rest is the same as one whose are, so only the latter may
    be chosen.
    """

    def __init__(self, spec: ActionSpec, device: torch.device) -> None:
        assert spec.joint_size is not None
        self.size = spec.joint_size
        sizes = spec.cardinalities
        grid = np.stack(np.unravel_index(np.arange(self.size), sizes), axis=-1)
        self.heads = torch.as_tensor(grid, dtype=torch.float32, device=device)
        """The options of each of them, (J, H)."""
        legal = (spec.canonical(grid) == grid).all(-1)
        self.legal = None if legal.all() else torch.as_tensor(legal, device=device)
        """Which of them may be chosen at all, (J,); None: all."""
        self._used = torch.as_tensor(spec.active(grid), dtype=torch.float32, device=device)
        strides = np.cumprod([1, *sizes[:0:-1]])[::-1]
        self._strides = torch.tensor(strides.copy(), dtype=torch.float64, device=device)

    def to_joint(self, action: Tensor) -> Tensor:
        """Options (..., H) as the number of their joint action, (..., 1)."""
        number = self._number(action)
        if self.legal is None:
            return number.float().unsqueeze(-1)
        # Which heads are in use does not depend on those that are not.
        rested = action * self._used[number.long()]
        return self._number(rested).float().unsqueeze(-1)

    def _number(self, action: Tensor) -> Tensor:
        return (action.double() * self._strides).sum(-1)

    def to_heads(self, joint: Tensor) -> Tensor:
        """Numbers of joint actions (..., 1) as options (..., H)."""
        return self.heads[joint.squeeze(-1).long()]

    def allowed(self, legal: Tensor | None) -> Tensor | None:
        """Which joint actions may be chosen, (..., J), given options (..., H, K).

        What is legal in a head that an action does not use does not matter to it.
        """
        if legal is None:
            return self.legal
        options = self.heads.long().T  # (H, J)
        each = legal.gather(-1, options.expand(*legal.shape[:-1], -1)) | (self._used.T == 0.0)
        return each.all(-2) if self.legal is None else each.all(-2) & self.legal
