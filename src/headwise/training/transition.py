"""One step of every slot as tensors: what flows from the environment into memory."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from headwise.algorithms.base import Acted


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
