"""CPU or GPU, by a short measurement: small networks with a slow environment gain nothing there."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import torch

AUTO = "auto"
"""Asks for the faster device."""


_CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"


class DeviceChoice(NamedTuple):
    """A device, and why it was taken; nothing is said where there was nothing to choose."""

    device: str
    why: str = ""


def let_streams_run_apart() -> None:
    """Asks CUDA for as many queues as it has, before it starts; a setting of the user's stays.

    Of the 8 it has otherwise, two streams may share one, and then the short work of the one waits
    for the long work of the other.
    """
    os.environ.setdefault(_CONNECTIONS, "32")


def faster_device(measure: Callable[[str], float]) -> DeviceChoice:
    """The device on which the same work takes fewer seconds.

    Without CUDA it is the CPU at once. A GPU that fails at the work is not taken, and it is said.

    Args:
        measure: Does some of the work on a device and says how many seconds all of it takes.
    """
    if not torch.cuda.is_available():
        return DeviceChoice("cpu")
    here = measure("cpu")
    try:
        there = measure("cuda")
    except RuntimeError as error:  # no memory left, or a driver that is too old
        return DeviceChoice("cpu", f"device cpu: the GPU failed when it was tried ({error})")
    device = "cuda" if there < here else "cpu"
    ratio = here / there if there < here else there / here
    other = "cpu" if device == "cuda" else "cuda"
    return DeviceChoice(
        device, f"device {device}: {ratio:.1f} times as fast as {other}, as measured now"
    )
