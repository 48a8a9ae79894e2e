"""Settings that were not always there, and what stays as it was without them."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

_AS_BEFORE = "as_before"


def added(default: Any) -> Any:
    """The default of a new setting, that says: as before. It is not to change in later versions.

    A run with it is what it was when there was no such setting, and its id stays what it was, so
    that studies of earlier versions go on.
    """
    return field(default=default, metadata={_AS_BEFORE: default})


def as_before(kind: type[Any]) -> dict[str, Any]:
    """The settings that were added to a dataclass, each with what says: as before."""
    return {f.name: f.metadata[_AS_BEFORE] for f in fields(kind) if _AS_BEFORE in f.metadata}
