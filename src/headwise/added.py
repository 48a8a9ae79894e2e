"""Settings that were not always there, and what stays as it was without them."""

from __future__ import annotations

from dataclasses import Field, field
from typing import Any

_AS_BEFORE = "as_before"


def added(default: Any) -> Any:
    """The default of a new setting, that says: as before. It must not change in later versions.

    A run with it is what it was when there was no such setting, and its id stays what it was, so
    that studies of earlier versions go on.
    """
    return field(default=default, metadata={_AS_BEFORE: default})


def is_as_before(setting: Field[Any], value: Any) -> bool:
    """Whether a setting was added and has the value that changes nothing."""
    return _AS_BEFORE in setting.metadata and bool(value == setting.metadata[_AS_BEFORE])
