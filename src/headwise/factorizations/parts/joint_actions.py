"""All joint actions of a spec in a row."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from headwise.factorizations.parts.layout import Layout
from headwise.spaces import ActionSpec, Choice


class JointActions:
    """All joint actions of a spec in a row: the last head turns fastest.

    An action whose idle heads are not at rest is the same as one whose are, so only the latter may
    be chosen.
    """

    def __init__(self, layout: Layout) -> None:
        self.outer = layout
        size = layout.spec.joint_size
        assert size is not None
        self.layout = Layout(ActionSpec.of(joint=Choice(size)), layout.device)
        grid = np.stack(np.unravel_index(np.arange(size), layout.spec.cardinalities), axis=-1)
        self._heads = torch.as_tensor(grid, dtype=torch.float32, device=layout.device)  # (J, H)
        rest = layout.spec.canonical(grid)
        legal = torch.as_tensor((rest == grid).all(-1), device=layout.device)
        self._legal = None if bool(legal.all()) else legal
        idle = ~layout.spec.active(grid)
        self._idle = torch.as_tensor(idle.T.copy(), device=layout.device)  # (H, J)
        self.num_distinct = int(legal.sum(-1))
        """How many joint actions there are, if those that do the same count once."""
        strides = np.cumprod([1, *layout.spec.cardinalities[:0:-1]])[::-1]
        self._strides = torch.tensor(strides.copy(), dtype=torch.float64, device=layout.device)

    def to_joint(self, action: Tensor) -> Tensor:
        """Options (..., H) as the number of their joint action, (..., 1)."""
        rested = action
        if self.outer.is_conditional:
            rested = action * self.outer.active(action)
        return (rested.double() * self._strides).sum(-1, keepdim=True).float()

    def to_heads(self, joint: Tensor) -> Tensor:
        """Numbers of joint actions (..., 1) as options (..., H)."""
        return self._heads[joint.squeeze(-1).long()]

    def legal(self, legal: Tensor | None) -> Tensor | None:
        """Which joint actions may be chosen, (..., 1, J), given options (..., D, K).

        What is legal in a head that an action does not use does not matter to it.
        """
        allowed = self._legal
        if legal is not None:
            options = self._heads.long().T  # (H, J)
            each = legal.gather(-1, options.expand(*legal.shape[:-1], -1)) | self._idle
            allowed = each.all(-2) if allowed is None else each.all(-2) & allowed
        if allowed is None:
            return None
        return allowed.unsqueeze(-2) if legal is not None else allowed.view(1, 1, 1, -1)
