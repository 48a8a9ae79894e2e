"""Tensors that stay where they are, for captured code that comes back to them."""

from __future__ import annotations

from torch import Tensor


class Kept:
    """Tensors by name; on a GPU what is kept later is written to the same memory."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}

    def keep(self, tensors: dict[str, Tensor]) -> None:
        """Takes the place of what was kept before."""
        if not self._fits(tensors):
            self.tensors = tensors
            return
        for name, x in tensors.items():
            self.tensors[name].copy_(x)

    def _fits(self, tensors: dict[str, Tensor]) -> bool:
        return tensors.keys() == self.tensors.keys() and all(
            x.device.type != "cpu" and x.shape == self.tensors[name].shape
            for name, x in tensors.items()
        )
