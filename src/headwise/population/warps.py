"""How many threads of a GPU share a program that takes a single row."""

from __future__ import annotations

_LANES_OF_A_WARP = 128


def warps_for(lanes: int) -> int:
    """Warps for a program of so many numbers, a power of two: 1, 2 or 4.

    Triton's own choice is 4. For a row of a few numbers three of them have nothing to do, and the
    fewer there are, the more programs run at once.
    """
    return min(max(lanes // _LANES_OF_A_WARP, 1), 4)
