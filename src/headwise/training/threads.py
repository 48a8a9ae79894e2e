"""How many threads torch may use while a population trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch

from headwise.population import bf16


@contextmanager
def training_threads(num_members: int, device: torch.device) -> Iterator[None]:
    """At most one thread for each member, and no more than torch was given; restored afterwards.

    With several threads one member's products are cut up and summed in another order than within a
    population, so a lone member runs with one thread to be equal to itself among others.
    """
    if device.type != "cpu":  # the CPU has nothing to multiply, and loops may share the process
        yield
        return
    before = torch.get_num_threads()
    count = max(1, min(num_members, bf16.threads_now()))  # this may be inside another of its kind
    # Products in bfloat16 have threads of their own; torch's would stand in their way.
    apart = bf16.wanted()
    torch.set_num_threads(1 if apart else count)
    try:
        with bf16.threads_of_its_own(count) if apart else nullcontext():
            yield
    finally:
        torch.set_num_threads(before)
