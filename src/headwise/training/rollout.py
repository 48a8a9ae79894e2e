"""On-policy memory: the last T steps of every slot, as tensors (P, T, E, ...)."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.algorithms.base import RolloutBatch
from headwise.training.fits import fits
from headwise.training.transition import MASKS, Transition, untold_masks


class Rollout:
    """T steps of every slot; full after T, then taken as one batch and begun anew."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.size = 0
        self._tensors: dict[str, Tensor] = {}
        self._arrays: dict[str, NDArray[Any]] = {}  # on the CPU: the same memory
        self._row: Tensor | None = None  # on a GPU: where captured code writes next

    @property
    def full(self) -> bool:
        """Whether T steps have been taken in."""
        return self.size == self.length

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """On the CPU: the memory of all parts, (P, T, E, ...); nothing before the first step."""
        if len(self._arrays) < len(self._tensors):
            self._arrays = {name: x.numpy() for name, x in self._tensors.items()}
        return self._arrays

    def add(self, step: Transition) -> None:
        """Takes in one step of every slot; tensors are copied."""
        self.write(step)
        self.count()

    def count(self, steps: int = 1) -> bool:
        """Counts steps that were written; whether things now lie somewhere else: they never do."""
        self.size += steps
        return False

    def write(self, step: Transition) -> None:
        """The part of `add` that works on tensors, for captured code."""
        parts = step.parts()
        if not self._tensors:
            self._tensors = {name: self._empty(x) for name, x in parts.items()}
        for name in MASKS:
            if name in parts and name not in self._tensors:  # till now, everything was legal
                self._tensors[name] = self._empty(parts[name]).fill_(True)
        parts |= untold_masks(parts, self._tensors)
        if step.obs.device.type == "cpu":
            for name, x in parts.items():  # NumPy's way to write a row costs half of torch's
                self.arrays[name][:, self.size] = x.numpy()
            return
        if self._row is None:
            self._row = torch.full((1,), self.size, device=step.obs.device)
        for name, x in parts.items():
            self._tensors[name].index_copy_(1, self._row, x.unsqueeze(1))
        self._row.add_(1).remainder_(self.length)

    def cut(self) -> None:
        """Marks what was taken in last as cut off, because something else follows."""
        if self.size:
            terminated, truncated = self._tensors["terminated"], self._tensors["truncated"]
            truncated[:, self.size - 1] = ~terminated[:, self.size - 1]

    def take(self) -> RolloutBatch:
        """All that was taken in; the next step begins a new rollout."""
        assert self.full
        self.size = 0
        kept = self._tensors
        return RolloutBatch(
            obs=kept["obs"],
            action=kept["action"],
            reward=kept["reward"],
            next_obs=kept["next_obs"],
            terminated=kept["terminated"],
            truncated=kept["truncated"],
            valid=kept["valid"],
            legal=kept.get("legal"),
            extra={n.removeprefix("extra_"): x for n, x in kept.items() if n.startswith("extra_")},
            next_legal=kept.get("next_legal"),
        )

    def state_dict(self) -> dict[str, Tensor]:
        """What has been taken in since the last batch; nothing if that is nothing."""
        if not self.size:
            return {}
        return {name: x[:, : self.size].clone() for name, x in self._tensors.items()}

    def fits(self, state: dict[str, Tensor], num_slots: int) -> bool:
        """Whether a saved state is of as many slots, and not yet full."""
        return all(x.shape[1] < self.length and x.shape[2] == num_slots for x in state.values())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        self.size = 0
        for name in untold_masks(state, self._tensors):
            self._tensors[name].fill_(True)
        for name, x in state.items():
            if name not in self._tensors:
                shape = (x.shape[0], self.length, *x.shape[2:])
                self._tensors[name] = torch.empty(shape, dtype=x.dtype, device=x.device)
            self.size = x.shape[1]
            self._tensors[name][:, : self.size].copy_(x)
        if self._row is not None:
            self._row.fill_(self.size)

    def _empty(self, x: Tensor) -> Tensor:
        shape = (x.shape[0], self.length, *x.shape[1:])
        with fits(
            "rollouts", got=f"{self.length:,} steps of every slot", fix="Choose a smaller n_steps."
        ):
            return torch.empty(shape, dtype=x.dtype, device=x.device)
