"""Settings that were not always there, and what stays as it was without them."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

_AS_BEFORE = "as_before"


def added(default: Any) -> Any:
    """The default of a setting that a later version added: with it everything is as before.

    It must never change. A run with it keeps the id that it had when there was no such setting, so
    that studies of earlier versions go on.
    """
    return field(default=default, metadata={_AS_BEFORE: default})


def as_before(kind: type[Any]) -> dict[str, Any]:
    """The settings that were added to a dataclass, each with the default that changes nothing."""
    return {f.name: f.metadata[_AS_BEFORE] for f in fields(kind) if _AS_BEFORE in f.metadata}
