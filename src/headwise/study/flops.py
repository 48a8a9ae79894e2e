"""How much arithmetic an action takes: matrix products, which are nearly all of it."""

from __future__ import annotations

from torch.utils.flop_counter import FlopCounterMode

from headwise.ops.buffers import Trace
from headwise.training.loop import Loop


def act_flops(loop: Loop) -> int | None:
    """Floating-point operations of the policy for one action of one member; None if unknown.

    A multiplication and an addition are two. It is counted after training, on observations at
    hand, and changes nothing.
    """
    if loop.obs is None:
        return None
    counter = FlopCounterMode(display=False)
    with counter, Trace():  # definitions in torch, which it can count
        loop.algorithm.policy(loop.obs, None, loop.legal)
    actions = loop.keys.num_members * loop.lazy_env.num_slots
    return int(counter.get_total_flops()) // actions or None
