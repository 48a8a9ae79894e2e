"""A replay memory as one with other slots or another size: the same transitions, newly arranged."""

from __future__ import annotations

import torch
from torch import Tensor

_CURSORS = ("next", "count", "steps", "even")


def fits(state: dict[str, Tensor], rows: int, num_slots: int) -> bool:
    """Whether a saved memory lies as it would in a ring of so many rows and slots."""
    following, count, steps = state["next"], state["count"], int(state["steps"].max())
    filled = state["obs"].shape[1]
    if following.shape[-1] != num_slots or filled != min(steps, rows):
        return False
    return bool((following < rows).all()) and (steps >= rows or torch.equal(following, count))


def arranged(state: dict[str, Tensor], rows: int, num_slots: int) -> dict[str, Tensor]:
    """A saved memory for so many rows and slots; if there is less room, the newest stay.

    What the slots remember is laid out one slot after another, oldest first, and divided evenly.
    Where two that did not follow each other come to lie side by side, the first is marked as cut
    off, so that no return reaches from one to the other.

    Args:
        state: Of a `Replay`, tensors (P, N, E, ...).
        rows: Transitions of each slot that there is room for.
        num_slots: Slots of each member.
    """
    members, old_slots = state["next"].shape
    places, lengths = [], []
    ended = state["terminated"] | state["truncated"]
    for member in range(members):
        own, last = _oldest_first(state, member, rows * num_slots // old_slots)
        ended[member].view(-1)[own[last]] = True
        each = [len(part) for part in torch.tensor_split(own, num_slots)]
        ends = torch.tensor(each).cumsum(-1) - 1
        ended[member].view(-1)[own[ends[ends >= 0]]] = True
        places.append(own)
        lengths.append(torch.tensor(each))
    count = torch.stack(lengths)
    index = torch.zeros(members, int(count.max()), num_slots, dtype=torch.long)
    for member, own in enumerate(places):
        for slot, part in enumerate(torch.tensor_split(own, num_slots)):
            index[member, : len(part), slot] = part
    flat = {name: x.flatten(1, 2) for name, x in state.items() if name not in _CURSORS}
    flat["truncated"] = ended.flatten(1, 2) & ~flat["terminated"]
    who = torch.arange(members).view(-1, 1, 1)
    kept = {name: x[who, index.to(x.device)] for name, x in flat.items()}
    steps = torch.full((members,), int(count.max()))
    even = torch.full((members,), bool((count == count.max()).all()))
    cursors = {"next": count % rows, "count": count, "steps": steps, "even": even}
    return kept | cursors


def _oldest_first(state: dict[str, Tensor], member: int, most: int) -> tuple[Tensor, Tensor]:
    """Where a member's transitions lie in (N * E), slot by slot, and the last of each slot."""
    filled, slots = state["obs"].shape[1:3]
    parts = []
    for slot in range(slots):
        following, count = (int(state[name][member, slot]) for name in ("next", "count"))
        kept = min(count, most)
        row = (following - kept + torch.arange(kept)) % filled
        parts.append(row * slots + slot)
    ends = torch.tensor([len(part) for part in parts]).cumsum(-1) - 1
    return torch.cat(parts), ends[[len(part) > 0 for part in parts]]
