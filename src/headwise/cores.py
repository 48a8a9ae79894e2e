"""How many cores there are for us."""

from __future__ import annotations

import os
import sys


def usable_cores() -> int:
    """Cores that this process may run on: where it is pinned, fewer than the machine has."""
    if sys.version_info >= (3, 13):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
