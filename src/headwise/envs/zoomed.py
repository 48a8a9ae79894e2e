"""An environment of ours in the zoom view: levels of bins in, numbers from -1 to 1 out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.envs.types import StepBatch, VecEnv
from headwise.spaces import Range, View

ZOOM = ("zoom_levels", "zoom_bins")
"""Settings of the zoom view."""


class ZoomedVecEnv:
    """An environment whose continuous heads are levels of bins, coarse to fine.

    Args:
        native: The environment; its discrete heads stay as they are.
        **zoom: `zoom_levels` and `zoom_bins`, as `View` takes them.
    """

    compiled: None = None
    """Its steps go through Python."""

    def __init__(self, native: VecEnv, **zoom: Any) -> None:
        self.native = native
        self.num_members, self.num_slots = native.num_members, native.num_slots
        self.obs_spec = native.obs_spec
        self.spec = View(native.spec, "zoom", **zoom).spec
        heads = (Range(-1.0, 1.0) if isinstance(h, Range) else h for h in native.spec.heads)
        self._unit = View(replace(native.spec, heads=tuple(heads)), "zoom", **zoom)

    @property
    def can_snapshot(self) -> bool:
        """Whether a run can be resumed exactly."""
        return self.native.can_snapshot

    @property
    def first_legal(self) -> None:
        """Environments of ours have no masks."""

    @property
    def is_taken(self) -> bool:
        """Whether another loop has begun episodes in the environment that it steps."""
        return self.native.is_taken

    def reset(self) -> NDArray[np.float32]:
        """Starts an episode in every slot; returns the observations (P, E, O)."""
        return self.native.reset()

    def step(self, action: NDArray[np.float32]) -> StepBatch:
        """One step of every slot, with actions (P, E, H) in the learner's form."""
        return self.native.step(self._unit.to_native(action).astype(np.float32))

    def snapshot(self) -> bytes:
        """The whole state, randomness included."""
        return self.native.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Goes back to a snapshot."""
        self.native.restore(snapshot)

    def close(self) -> None:
        """Lets go of whatever the environment holds."""
        self.native.close()

    def __getattr__(self, name: str) -> Any:
        """What only some environments have: `reseed`, `rest`."""
        return getattr(self.native, name)
