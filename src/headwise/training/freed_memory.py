"""Memory that a learner on the CPU gives back and takes again at every update."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's names of the two settings
_KEPT, _LARGEST = 1 << 28, 1 << 25


@cache
def keep_freed_memory() -> None:
    """Lets this process keep up to 256 MiB that it has freed, in pieces of up to 32 MiB.

    Otherwise the tensors of an update go back to the system when they are freed, and the next
    update has to ask for them page by page. Done once in a process; elsewhere than with glibc
    nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    setting = getattr(ctypes.CDLL(None), "mallopt", None)
    if setting is not None:
        setting(_TRIM_THRESHOLD, _KEPT)
        setting(_MMAP_THRESHOLD, _LARGEST)
