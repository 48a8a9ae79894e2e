"""How many threads compiled operations spread members over."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_chosen = threading.local()


def member_threads() -> int:
    """Threads that members are spread over: as many as were chosen, or as torch has."""
    chosen: int | None = getattr(_chosen, "count", None)
    return torch.get_num_threads() if chosen is None else chosen


@contextmanager
def members_over(count: int) -> Iterator[None]:
    """While it is entered, this thread spreads members over so many, and torch has one.

    Threads of torch wait for each other at every operation, which on a busy machine takes far
    longer than the operation; those of compiled operations take over what no other has begun.
    """
    before, chosen = torch.get_num_threads(), getattr(_chosen, "count", None)
    torch.set_num_threads(1)
    _chosen.count = count
    try:
        yield
    finally:
        _chosen.count = chosen
        torch.set_num_threads(before)
