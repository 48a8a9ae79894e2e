"""Snapshots of users' environments as bytes: a line that says what they are of, and all states."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from headwise.errors import EnvError

_MAGIC = b"headwise/foreign/1\n"


def packed(parts: Sequence[bytes], *, slots: list[int], made: Any) -> bytes:
    """States one after another, behind a header."""
    header = {"slots": slots, "sizes": [len(part) for part in parts], "made": made}
    return _MAGIC + json.dumps(header).encode() + b"\n" + b"".join(parts)


def unpacked(name: str, snapshot: bytes, slots: list[int]) -> list[bytes]:
    """The states of so many members and slots; refuses what was damaged."""
    header, rest = header_of(snapshot)
    sizes: Any = header.get("sizes")
    whole = isinstance(sizes, list) and all(isinstance(x, int) and x >= 0 for x in sizes)
    if not whole or header.get("slots") != slots or sum(sizes) != len(rest):
        raise EnvError(
            f"{name}: the snapshot is damaged or of another environment",
            got=f"{len(snapshot)} bytes",
            allowed=f"a snapshot of {slots[0]} members with {slots[1]} slots",
        )
    return [rest[start:stop] for start, stop in pairwise(accumulate([0, *sizes]))]


def header_of(snapshot: bytes) -> tuple[dict[str, Any], bytes]:
    """What a snapshot says of itself, which is nothing if it is damaged, and all the rest."""
    told, _, rest = snapshot.removeprefix(_MAGIC).partition(b"\n")
    try:
        header = json.loads(told) if snapshot.startswith(_MAGIC) else {}
    except ValueError:
        header = {}
    return (header if isinstance(header, dict) else {}), rest
