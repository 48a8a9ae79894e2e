"""Between the environment's arrays and the learner's tensors.

To a GPU a step goes in one copy out of page-locked memory, and actions come back the same way: both
copies can be part of a CUDA graph, because they go from and to places that never change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.envs.types import StepBatch

_FIELDS = (
    "obs", "next_obs", "reward", "terminated", "truncated", "valid", "legal", "next_legal"
)  # fmt: skip
_ALIGNED = 16


class Bridge:
    """Takes steps of an environment to a device, and actions to the environment.

    `load` and `action` are for the environment's side; `tensors` and `send` for the device's, where
    they may be captured. `expect` is called after every `send`, captured or not, by the caller
    for it, on the stream that it is on.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._step: StepBatch | None = None
        self._views: list[tuple[StepBatch, dict[str, Tensor]]] = []
        self._action: Tensor | None = None
        self._arrays: dict[str, NDArray[Any]] = {}
        self._there: dict[str, Tensor] = {}
        self._staging: tuple[Tensor, Tensor] | None = None
        self._stream: torch.cuda.Stream | None = None  # that actions come on, until they are here

    def load(self, step: StepBatch) -> None:
        """Takes a step; the environment's arrays may be overwritten as soon as it was used."""
        self._step = step
        if self._device.type != "cuda":
            return
        if self._staging is None or (step.legal is not None) != ("legal" in self._arrays):
            self._allocate(step)
        # What was copied from here last has arrived: the action for this step waited for it.
        for name, array in self._arrays.items():
            np.copyto(array, getattr(step, name))

    @property
    def step(self) -> StepBatch:
        """The step loaded last."""
        assert self._step is not None
        return self._step

    def tensors(self) -> dict[str, Tensor]:
        """The step loaded last, by name; they are overwritten by the next one."""
        if self._staging is not None:
            here, there = self._staging
            there.copy_(here, non_blocking=True)
            return self._there
        for step, tensors in self._views:  # most environments have one set of arrays, or two
            if step is self._step:
                return tensors
        present = {name: getattr(self.step, name) for name in _FIELDS}
        tensors = {name: torch.from_numpy(x) for name, x in present.items() if x is not None}
        self._views = [(self.step, tensors), *self._views[:1]]
        return tensors

    def send(self, action: Tensor) -> None:
        """Sends actions (P, E, H) to the environment."""
        if self._device.type != "cuda":
            self._action = action
            return
        if self._action is None:
            self._action = torch.empty(action.shape, pin_memory=True)
            self._array = self._action.numpy()
        self._action.copy_(action, non_blocking=True)

    def expect(self) -> None:
        """From now on actions are on their way, on the current stream."""
        if self._device.type == "cuda":
            self._stream = torch.cuda.current_stream(self._device)

    def arrived(self) -> bool:
        """Whether the actions sent last are here, whatever the current stream is by now.

        Then `action` need not wait.
        """
        if self._stream is not None and self._stream.query():
            self._stream = None
        return self._stream is None

    def action(self) -> NDArray[np.float32]:
        """The actions sent last; waits for them."""
        assert self._action is not None
        if self._device.type != "cuda":
            return self._action.cpu().numpy()
        if not self.arrived():
            assert self._stream is not None
            self._stream.synchronize()
            self._stream = None
        return self._array

    def _allocate(self, step: StepBatch) -> None:
        """One run of bytes for all arrays, in page-locked memory and on the device."""
        places, size = {}, 0
        self._arrays, self._there = {}, {}
        for name in _FIELDS:
            array = getattr(step, name)
            if array is not None:
                places[name] = (size, array)
                size += -(-array.nbytes // _ALIGNED) * _ALIGNED
        here = torch.zeros(size, dtype=torch.uint8, pin_memory=True)
        there = torch.zeros(size, dtype=torch.uint8, device=self._device)
        self._staging = here, there
        for name, (start, array) in places.items():
            part = slice(start, start + array.nbytes)
            self._arrays[name] = here.numpy()[part].view(array.dtype).reshape(array.shape)
            kind = torch.from_numpy(array).dtype
            self._there[name] = there[part].view(kind).view(array.shape)
