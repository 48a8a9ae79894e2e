"""Which options are legal: from the environment's mask to the one that a learner is given."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.spaces import ActionSpec


class LegalOptions:
    """Turns masks over the environment's heads (..., H, K) into masks over a learner's choices.

    A learner masks its D Choice heads, padded to its own largest number of options. A Range that it
    sees as bins may always take any of them.

    Args:
        env_spec: The action as the environment has it.
        spec: The action as the learner sees it, head for head.
        device: Where masks are.
    """

    def __init__(
        self, env_spec: ActionSpec, spec: ActionSpec, device: torch.device | str = "cpu"
    ) -> None:
        choices = [h for h, n in enumerate(spec.cardinalities) if n]
        self._rows = torch.tensor(choices, dtype=torch.long, device=device)
        self._width = spec.max_options
        binned = [not env_spec.cardinalities[h] for h in choices]
        self._binned = torch.tensor(binned, device=device).unsqueeze(-1)

    def __call__(self, legal: Tensor) -> Tensor:
        """The learner's mask, (..., D, K)."""
        picked = legal.index_select(-2, self._rows)
        missing = self._width - picked.shape[-1]
        if missing > 0:
            picked = torch.nn.functional.pad(picked, (0, missing))
        return picked[..., : self._width] | self._binned
