"""How many threads a population may use while it trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from headwise.ops.threads import member_threads, members_over


@contextmanager
def training_threads(num_members: int, device: torch.device) -> Iterator[None]:
    """At most one thread for each member, and no more than torch was given; restored afterwards.

    They are those of compiled operations, which spread members over them. Torch itself has one: on
    several it would sum in another order, and on a busy machine they would wait for each other.
    """
    if device.type != "cpu":  # the CPU has nothing to multiply, and loops may share the process
        yield
        return
    with members_over(max(1, min(num_members, member_threads()))):
        yield
