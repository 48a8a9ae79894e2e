"""Options for heads that are numbers, in tensors: what a learner of options sees and does there."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import torch
from torch import Tensor

from headwise.spaces.action import ActionSpec, Choice, Range
from headwise.spaces.views import View

logger = logging.getLogger(__name__)


class Binning:
    """The action as a learner sees it, and the way from there to the environment's heads and back.

    Args:
        spec: The environment's action.
        bins: Bins of each Range: one number, or numbers by head name; None leaves Ranges alone.
        device: Where actions and masks are.
    """

    def __init__(
        self,
        spec: ActionSpec,
        bins: int | Mapping[str, int] | None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.spec = spec if bins is None else View(spec, "discrete", bins=bins).spec
        """What the learner sees."""
        _warn_of_gaps(spec, self.spec)
        pairs = list(zip(spec.heads, self.spec.heads, strict=True))
        # Bin b of n, both ends included, is the unit value 2 b / (n - 1) - 1.
        steps = [
            2.0 / (new.n - 1) if isinstance(new, Choice) and new != old else 1.0
            for old, new in pairs
        ]
        changed = [new != old for old, new in pairs]
        self._any = any(changed)
        self._scale = torch.tensor(steps, device=device)
        self._shift = torch.tensor([-1.0 if c else 0.0 for c in changed], device=device)
        choices = [h for h, n in enumerate(self.spec.cardinalities) if n]
        rows = [*choices, *range(spec.num_heads, spec.mask_rows)]
        self._rows = torch.tensor(rows, dtype=torch.long, device=device)
        binned = [h < spec.num_heads and not spec.cardinalities[h] for h in rows]
        self._binned = torch.tensor(binned, device=device).unsqueeze(-1)

    def to_env(self, action: Tensor) -> Tensor:
        """Actions of the learner (..., H) with every bin as a unit value."""
        return torch.addcmul(self._shift, action, self._scale) if self._any else action

    def units(self) -> dict[int, Tensor]:
        """What the bins of each head that has some stand for, by the head's number."""
        found = {}
        pairs = zip(self.spec.heads, self._shift.tolist(), strict=True)
        for h, (head, shift) in enumerate(pairs):
            if shift:
                assert isinstance(head, Choice)
                action = torch.zeros(head.n, len(self._shift), device=self._shift.device)
                action[:, h] = torch.arange(head.n)
                found[h] = self.to_env(action)[:, h]
        return found

    def legal(self, mask: Tensor) -> Tensor:
        """The learner's mask (..., D, K), from one over the environment's heads (..., H, K).

        A learner masks its D Choice heads, padded to its own largest number of options; rows of
        tables that the environment gives follow them. A Range that it sees as bins may always take
        any of them.
        """
        width = self.spec.max_options
        picked = mask.index_select(-2, self._rows)
        missing = width - picked.shape[-1]
        if missing > 0:
            picked = torch.nn.functional.pad(picked, (0, missing))
        return picked[..., :width] | self._binned


def _warn_of_gaps(spec: ActionSpec, binned: ActionSpec) -> None:
    """Says so where a head has more different values than bins: some can never be chosen."""
    for name, old, new in zip(spec.names, spec.heads, binned.heads, strict=True):
        if isinstance(old, Range) and isinstance(new, Choice) and new.n < old.levels:
            logger.warning(
                "%d bins of the head %r reach %d of its %d different values, so the others can "
                "never be chosen, however long it learns. Give it more: bins={%r: %d}.",
                new.n, name, new.n, old.levels, name, old.levels,
            )  # fmt: skip
