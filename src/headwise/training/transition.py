"""One step of every slot as tensors: what flows from the environment into memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from headwise.algorithms.base import Acted

MASKS = ("legal", "next_legal")
"""The parts of a step that an environment may give or not."""


class Transition(NamedTuple):
    """Tensors (P, E, ...)."""

    obs: Tensor
    acted: Acted
    reward: Tensor
    next_obs: Tensor
    terminated: Tensor
    truncated: Tensor
    valid: Tensor
    legal: Tensor | None = None
    next_legal: Tensor | None = None
    whole: bool | None = None
    """Whether every slot is valid, where that is known without asking the device."""

    def parts(self) -> dict[str, Tensor]:
        """All tensors by name; what the algorithm keeps for itself begins with `extra_`."""
        named = {
            "obs": self.obs,
            "action": self.acted.action,
            "reward": self.reward,
            "next_obs": self.next_obs,
            "terminated": self.terminated,
            "truncated": self.truncated,
            "valid": self.valid,
        }
        if self.legal is not None and self.next_legal is not None:
            named |= {"legal": self.legal, "next_legal": self.next_legal}
        return named | {f"extra_{name}": x for name, x in self.acted.extra.items()}


def untold_masks(parts: Mapping[str, Tensor], held: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Masks that allow everything, of a step without any, where memory (P, N, E, ...) has them.

    So it is if an agent goes on in an environment that gives none. Options that a head does not
    have are left out by the learner, whatever a mask says of them.
    """
    untold = (name for name in MASKS if name in held and name not in parts)
    return {name: torch.ones_like(held[name][:, 0]) for name in untold}
