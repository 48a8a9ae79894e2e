"""How many threads a population may use while it trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def training_threads(num_members: int, device: torch.device) -> Iterator[None]:
    """At most one thread for each member, and no more than torch was given; restored afterwards.

    Compiled operations spread members over as many threads. What torch does itself on several would
    be summed in another order than within a population, so a lone member has one.
    """
    if device.type != "cpu":  # the CPU has nothing to multiply, and loops may share the process
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, min(num_members, before)))
    try:
        yield
    finally:
        torch.set_num_threads(before)
