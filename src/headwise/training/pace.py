"""How fast a loop trains, measured on the loop itself: a few ticks, with updates in them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch

from headwise.ops.program import WARM_UP
from headwise.training.loop import Loop

AT_MOST = 10.0
"""Seconds that getting ready, or a measurement, may take; then it is judged by what there is."""
FEW_ROWS = 512
"""Of a rollout that is tried out."""


def impatient(settings: Mapping[str, Any], num_slots: int) -> dict[str, Any]:
    """The same settings with a short rollout and hardly any warm-up, so that updates come at once.

    Their cost grows with the rows they are made of, so a step costs what it does without haste.
    """
    rows = max(FEW_ROWS, settings.get("batch_size", 0))
    small = {"n_steps": max(rows // num_slots, 1), "learning_starts": 2 * num_slots}
    return {
        name: min(value, small[name]) if name in small else value
        for name, value in settings.items()
    }


def get_ready(loop: Loop, at_most: float = AT_MOST) -> None:
    """Ticks until updates run as they will from then on.

    The first one allocates; on a GPU a few more go by before they are captured.
    """
    cuda = loop.keys.device.type == "cuda"
    wanted = WARM_UP + 1 if cuda else 1
    begun = time.perf_counter()
    while wanted and time.perf_counter() - begun < at_most:
        before = loop.updates
        loop.go_on()
        wanted -= int(loop.updates > before)
    _wait(cuda)


def seconds_per_step(loop: Loop, seconds: float, at_most: float = AT_MOST) -> float:
    """Seconds of one environment step of every member, with its share of the updates.

    Measured from one update to another, at least so many seconds later: a rollout counts whole or
    not at all. A loop that has not come to learn within `at_most` is judged by its ticks.
    """
    cuda = loop.keys.device.type == "cuda"
    _wait(cuda)
    start, first, updates = time.perf_counter(), loop.env_steps, loop.updates
    while True:
        loop.go_on()
        now = time.perf_counter()
        if (loop.updates > updates and now - start >= seconds) or now - start >= at_most:
            _wait(cuda)
            return (time.perf_counter() - start) / (loop.env_steps - first)
        updates = loop.updates


def _wait(cuda: bool) -> None:
    """Until the device has done what it was told on this stream; other streams go on."""
    if cuda:
        torch.cuda.current_stream().synchronize()
