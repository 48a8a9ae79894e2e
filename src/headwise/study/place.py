"""Where a study trains, if that is left to Headwise: on which device, and by which executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from headwise.cores import usable_cores
from headwise.study.estimate import can_begin, measured_seconds
from headwise.study.planner import Pack, pack_runs
from headwise.study.run import Run
from headwise.study.store import Store
from headwise.training.device import AUTO, DeviceChoice, faster_device, let_streams_run_apart


class Place(NamedTuple):
    """An executor by name, a device, and why it was taken where it was chosen."""

    executor: str
    device: str
    why: str = ""


def choose_place(
    executor: str | None, device: str, runs: Sequence[Run], store: Store, max_members: int
) -> Place:
    """What was asked for, with the rest filled in.

    A study keeps to the device it began on. Otherwise a population of each algorithm is tried for
    a moment: on the CPU, of which there are as many as cores, and on the GPU.

    Args:
        executor: Its name; None is processes for the CPU and streams for a GPU.
        device: A device, or "auto".
        runs: Those that are asked for.
        store: Where finished ones are.
        max_members: Runs packed into one population, at most.
    """
    let_streams_run_apart()
    choice = DeviceChoice(device)
    if device == AUTO:
        choice = _choice(executor, runs, store, max_members)
    name = executor or ("streams" if choice.device.startswith("cuda") else "local")
    return Place(name, *choice)


def _choice(
    executor: str | None, runs: Sequence[Run], store: Store, max_members: int
) -> DeviceChoice:
    if executor in ("local", "ray"):  # processes; machines that cannot be measured from here
        return DeviceChoice("cpu")
    if executor == "streams":
        return DeviceChoice("cuda")
    if not torch.cuda.is_available():
        return DeviceChoice("cpu")
    for run in runs:
        if store.is_finished(run.id):
            device = str(store.fingerprint(run.id).get("device", "cpu"))
            return DeviceChoice(device, f"device {device}: the study was begun there")
    tried: dict[str, Pack] = {}
    for pack in pack_runs(runs, max_members):
        if pack.runs[0].algorithm not in tried and can_begin(pack):
            tried[pack.runs[0].algorithm] = pack
    if not tried:
        return DeviceChoice("cpu")
    cores = 1 if executor else usable_cores()

    def measure(device: str) -> float:
        seconds = sum(measured_seconds(pack, device) for pack in tried.values())
        return seconds / cores if device == "cpu" else seconds

    return faster_device(measure)
