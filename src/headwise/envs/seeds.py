"""Seeds of slots: which episodes a member sees, alone and in any population."""

from __future__ import annotations

from collections.abc import Sequence


def slot_seeds(seeds: Sequence[int], num_slots: int, begun: int = 0) -> list[int]:
    """A 32-bit seed for each slot of each member, a function of the member's seed and the slot.

    Args:
        seeds: The members' seeds.
        num_slots: Slots of each.
        begun: How often the environments had to be made anew, so that other episodes come then.
    """
    from headwise import _core

    slots = range(num_slots)
    return [_core.philox([slot, begun, 0, 0], seed)[0] for seed in seeds for slot in slots]
