"""All joint actions of a spec in a row."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.spaces import ActionSpec, Link


class JointActions:
    """All joint actions of discrete heads in a row: the last head turns fastest.

    An action whose idle heads are not at rest is the same as one whose are, so only the latter may
    be chosen; and none that constraints forbid.
    """

    def __init__(self, spec: ActionSpec, device: torch.device) -> None:
        assert spec.joint_size is not None
        self.size = spec.joint_size
        sizes = spec.cardinalities
        grid = np.stack(np.unravel_index(np.arange(self.size), sizes), axis=-1)
        self.heads = torch.as_tensor(grid, dtype=torch.float32, device=device)
        """The options of each of them, (J, H)."""
        legal = (spec.canonical(grid) == grid).all(-1)
        for link in spec.links:
            if link.table is not None:
                legal &= np.array(link.table)[_rows(grid, link, spec), grid[:, link.child]]
        self.legal = None if legal.all() else torch.as_tensor(legal, device=device)
        """Which of them may be chosen at all, (J,); None: all."""
        self._used = torch.as_tensor(spec.active(grid), dtype=torch.float32, device=device)
        self._tables = _given(grid, spec, device)
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
        """Which joint actions may be chosen, (..., J), given options (..., H, K) and tables below.

        What is legal in a head that an action does not use does not matter to it.
        """
        if legal is None:
            return self.legal
        options = self.heads.long().T  # (H, J)
        heads = legal[..., : len(options), :]
        each = heads.gather(-1, options.expand(*heads.shape[:-1], -1)) | (self._used.T == 0.0)
        result = each.all(-2) if self.legal is None else each.all(-2) & self.legal
        for row, option, idle in self._tables:
            result = result & (legal[..., row, option] | idle)
        return result


def _rows(grid: NDArray[np.intp], link: Link, spec: ActionSpec) -> NDArray[np.intp]:
    """The row of a table that each joint action is in."""
    row = np.zeros(len(grid), dtype=np.intp)
    for parent in link.parents:
        row = row * spec.cardinalities[parent] + grid[:, parent]
    return row


def _given(
    grid: NDArray[np.intp], spec: ActionSpec, device: torch.device
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """For each given table: the row of a mask, the option, and the joint actions it forbids."""
    found, first, used = [], spec.num_heads, spec.active(grid)
    for link in spec.given:
        idle = ~used[:, [link.child, *link.parents]].all(-1)
        columns = first + _rows(grid, link, spec), grid[:, link.child], idle
        found.append(tuple(torch.as_tensor(x, device=device) for x in columns))
        first += link.num_rows(spec.cardinalities)
    return [(row, option, idle) for row, option, idle in found]
