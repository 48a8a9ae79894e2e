"""What is too large to be made, said in words: torch and NumPy have a dozen messages for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headwise.errors import ConfigError

_WORDS = ("memory", "overflow", "too large", "too big")


@contextmanager
def fits(what: str, *, got: str, fix: str) -> Iterator[None]:
    """Turns errors for want of memory into one that says what did not fit.

    Args:
        what: What is made, in the plural.
        got: How large it was to be.
        fix: What to do about it, as a sentence.
    """
    try:
        yield
    except (MemoryError, OverflowError, RuntimeError, TypeError) as error:
        told = str(error).lower()
        if not isinstance(error, MemoryError) and not any(word in told for word in _WORDS):
            raise
        raise ConfigError(
            f"{what} do not fit into the memory that there is", got=got, fix=fix
        ) from error
