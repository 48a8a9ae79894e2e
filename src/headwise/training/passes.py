"""An update in several passes over the same data, each part of it captured by itself."""

from __future__ import annotations

import torch

from headwise.algorithms.base import InPasses, Metrics, RolloutBatch
from headwise.population import Draws
from headwise.training.capture import Captured


class Passes:
    """The `update` of a learner on a GPU.

    Args:
        algorithm: The learner.
        device: Where it lives.
    """

    def __init__(self, algorithm: InPasses, device: torch.device) -> None:
        self._again = algorithm.num_passes - 1
        self._given: tuple[RolloutBatch, Draws] | None = None
        # A pass does everything many times, so one is warm-up enough.
        self._begin = Captured(lambda: algorithm.begin(*self._data()), device, warm_up=1)
        self._go_over = Captured(algorithm.go_over, device, warm_up=1)
        self._finish = Captured(algorithm.finish, device, warm_up=1)

    def update(self, batch: RolloutBatch, draws: Draws) -> Metrics:
        """One update; the batch is in the same memory every time."""
        self._given = batch, draws
        metrics = self._begin()
        for _ in range(self._again):
            self._go_over()
        return metrics | self._finish()

    def _data(self) -> tuple[RolloutBatch, Draws]:
        assert self._given is not None
        return self._given
