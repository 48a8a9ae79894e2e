"""
The compiled heart of Headwise: environments and counter-based randomness.
"""

from collections.abc import Sequence


def philox(counter: Sequence[int], key: int) -> list[int]:
    """
    Four random words: Philox4x32-10 of four counter words and a 64-bit key.
    """
