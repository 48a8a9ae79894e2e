"""Tables between heads, for the cases of operations that read them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from headwise.ops import HeadTable, When
from headwise.ops.links import HeadLink, Links

SIZES = (3, 4, 2, 3)
KNOWN = ((True, True, False), (False, True, True), (True, True, True), (False, False, True))
"""The last head's options by the second's."""


def linked(*, conditional: bool = False, own: bool = False) -> tuple[HeadTable, Links]:
    """Heads side by side: the second by the first as is given, the last by the second as is known.

    Args:
        conditional: Whether the second and the last are in use under options of the first.
        own: Whether the table of outputs has the links, as policies have them.
    """
    when = When(0, 0.0, 2.0) if conditional else None
    conditions = (None, when, None, when)
    places = [(0, 1 + sum(SIZES[:h])) for h in range(4)]
    table = HeadTable(SIZES, conditions, places)
    links = [HeadLink(1, (0,), sum(SIZES), None), HeadLink(3, (1,), 0, KNOWN)]
    found = Links(HeadTable(SIZES, conditions, places), links, (0, 1, 2, 3))
    if own:
        table.links = found
    return table, found


def mask_of(new: Any, table: HeadTable) -> Tensor:
    """Which options may be chosen, and the table that is given: an option in every row."""
    rows = new.coins(12)
    kept = 4 * torch.arange(3) + new.whole(4, 3).long()
    rows = rows.scatter(-1, kept, 1.0)
    own = torch.ones(*rows.shape[:-1], table.total)
    return torch.cat([own, rows], dim=-1)
