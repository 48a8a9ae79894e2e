"""Options for heads that are numbers: how a learner of options acts in an environment of ranges."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from headwise.spaces import ActionSpec, Choice, View


class Binning:
    """The action as a learner of options sees it, and the way back to the learner's form of ranges.

    Args:
        spec: The environment's action.
        bins: Bins of each Range: one number, or numbers by head name; None leaves Ranges alone.
        device: Where actions are.
    """

    def __init__(
        self,
        spec: ActionSpec,
        bins: int | Mapping[str, int] | None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.spec = spec if bins is None else View(spec, "discrete", bins=bins).spec
        pairs = zip(spec.heads, self.spec.heads, strict=True)
        # Bin b of n, both ends included, is the unit value 2 b / (n - 1) - 1.
        steps = [
            2.0 / (new.n - 1) if isinstance(new, Choice) and new != old else 1.0
            for old, new in pairs
        ]
        changed = [new != old for old, new in zip(spec.heads, self.spec.heads, strict=True)]
        self._any = any(changed)
        self._scale = torch.tensor(steps, device=device)
        self._shift = torch.tensor([-1.0 if c else 0.0 for c in changed], device=device)

    def to_env(self, action: Tensor) -> Tensor:
        """Actions of the learner (..., H) with every bin as a unit value."""
        return torch.addcmul(self._shift, action, self._scale) if self._any else action
