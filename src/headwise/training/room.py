"""How much memory networks and their buffers take, told and refused before any of it is taken."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from headwise.algorithms.base import AlgorithmConfig, RolloutPlan, Task
from headwise.errors import ConfigError
from headwise.population import ShapesOnly

LARGE = 0.25
"""The share of the memory that is free from which on a learner is announced."""
_LEAST = 2**24
_GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
"""Where containers say what they allow and what is used, in two versions."""
logger = logging.getLogger("headwise")


class _Counted(TorchFunctionMode):
    """Counts the bytes of all buffers that are made while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if func is torch.zeros and isinstance(made, Tensor):
            self.bytes += made.numel() * made.element_size()
        return made


def size_of(config: AlgorithmConfig, task: Task) -> tuple[int, int]:
    """Parameters of a member, and bytes of the learner of all of them and of its rollout.

    The learner is built of shapes alone, which takes no memory.
    """
    with _Counted() as counted, torch.no_grad():
        learner = config.build(replace(task, keys=ShapesOnly(task.keys.seeds)))
    rows = 4 * task.num_slots  # what the environment shows, and what is acted on
    if isinstance(learner.plan, RolloutPlan):
        rows += 2 * learner.plan.length * task.num_slots
    seen = 4 * rows * task.obs_spec.size * task.keys.num_members
    return learner.num_parameters, counted.bytes + seen


def check_networks(config: AlgorithmConfig, task: Task) -> None:
    """Refuses networks that do not fit into the memory that is free, and announces large ones.

    Args:
        config: The algorithm's settings.
        task: What the learner is built for.
    """
    free, members = free_memory(task.device), task.keys.num_members
    kinds = type(config), type(task.factorization)
    if not free or not all(kind.__module__.startswith("headwise.") for kind in kinds):
        return  # a user's own may need more of its first numbers than their shape
    if roughly(config, task) < LARGE * free:
        return  # most are small, and to work it out takes longer than to make them
    parameters, needed = size_of(config, task)
    each = " for each seed" if members > 1 else ""
    size = f"{parameters:,} parameters{each}, observations of {task.obs_spec.vector_size:,} numbers"
    if needed > free:
        seeds = f"{members} seeds, " if members > 1 else ""
        raise ConfigError(
            f"the networks and their buffers do not fit into memory: they take "
            f"{_gigabytes(needed)}",
            got=f"{seeds}{size}, net_arch={config.net_arch}",
            allowed=f"{_gigabytes(free)}, which is what is free now",
            fix="Make the observation smaller (a picture smaller, gray or cropped), or net_arch; "
            "or take fewer seeds, or for ppo a smaller n_steps.",
        )
    if needed > LARGE * free:
        _announce(f"{size}. With their buffers they take {_gigabytes(needed)}")


@cache
def _announce(size: str) -> None:
    """Once, however often the same is built."""
    logger.warning("The networks are large: %s of the memory that is free.", size)


def free_memory(device: torch.device) -> int:
    """Bytes of a device that this process could still take; 0 if unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    lines = _lines("/proc/meminfo")
    words = next((line.split() for line in lines if line.startswith("MemAvailable:")), None)
    if words is None:  # not on this system
        return 0
    free = 1024 * int(words[1])
    for folder, limit, usage in _GROUPS:
        limits, used = _lines(f"{folder}/{limit}"), _lines(f"{folder}/{usage}")
        if not limits or not used or not limits[0].isdigit():
            continue
        files = [line.split() for line in _lines(f"{folder}/memory.stat")]
        cached = sum(int(n) for name, n in files if name in ("active_file", "inactive_file"))
        free = min(free, max(int(limits[0]) - int(used[0]) + cached, 1))
    return free


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def roughly(config: AlgorithmConfig, task: Task) -> int:
    """Bytes that no learner takes more than."""
    spec, hidden = task.spec, (*config.net_arch, getattr(config, "branch_width", 0))
    options = sum(max(n, 2) for n in spec.cardinalities)
    if task.factorization.is_joint:
        options = math.prod(max(n, 1) for n in spec.cardinalities)
    widest, seen = max(hidden), task.obs_spec.vector_size + options + spec.num_heads
    weights = seen * widest + len(hidden) * widest**2 + 2 * options * widest
    batch = getattr(config, "n_steps", 0) * task.num_slots + getattr(config, "batch_size", 0)
    row = 6 * seen + 16 * sum(hidden) + 16 * options * spec.num_heads
    weights *= spec.num_heads  # some have networks of their own for each
    numbers = 32 * weights + 2 * (batch + 8 * task.num_slots) * row
    return _LEAST + 4 * task.keys.num_members * numbers


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
