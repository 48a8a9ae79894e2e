"""How much memory a replay takes when it is full, told before a night is spent on filling it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import torch

from headwise.errors import ConfigError
from headwise.training.loop import Loop
from headwise.training.replay import Replay

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
logger = logging.getLogger("headwise")


def check_room(loop: Loop) -> None:
    """Refuses a replay that can never fit into memory, and warns of one that takes most of it."""
    if not isinstance(loop.memory, Replay):
        return
    members, device = loop.keys.num_members, loop.keys.device
    spec, obs_size = loop.binning.spec, loop.lazy_env.obs_spec.size
    each = loop.memory.bytes_of_one(obs_size, spec.num_heads)
    kept = loop.memory.rows * loop.memory.num_slots
    needed, there = members * kept * each, memory_of(device)
    # Parameters with their gradients and Adam's two moments are there already.
    taken = 16 * members * loop.algorithm.num_parameters
    if not there or needed <= (there - taken) / 2:
        return
    seeds = f"{members} seeds, " if members > 1 else ""
    numbers = loop.lazy_env.obs_spec.vector_size
    made_of = f"{seeds}buffer_size={kept:,}, observations of {numbers:,} numbers"
    smaller = f"buffer_size={max(int((there - taken) / 4 / members / each), 1):_}"
    beside = f" beside networks of {_gigabytes(taken)}" if taken > there / 16 else ""
    if needed > there - taken:
        raise ConfigError(
            f"the replay can never fit into memory: full, it takes {_gigabytes(needed)}{beside}",
            got=made_of,
            allowed=f"{_gigabytes(there)}, which is all there is",
            fix=f"Set a smaller replay, for example {smaller}; or fewer seeds or a smaller "
            "observation.",
        )
    logger.warning(
        "The replay takes %s of %s of memory when it is full (%s), and while a checkpoint is "
        "written as much again. Set a smaller one, for example %s.",
        _gigabytes(needed),
        _gigabytes(there),
        made_of,
        smaller,
    )


def memory_of(device: torch.device) -> int:
    """Bytes that a device has, as far as this process may use them; 0 if unknown."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on this system
        return 0
    for limit in map(Path, _LIMITS):  # of a container
        words = limit.read_text().strip() if limit.is_file() else ""
        there = min(there, int(words)) if words.isdigit() else there
    return there


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
