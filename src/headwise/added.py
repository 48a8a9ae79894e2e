"""Ids of runs, and settings that were not always there, which leave ids as they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

ID_LENGTH = 16
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


def id_of(determining: Mapping[str, Any]) -> str:
    """The first 16 hex digits of the SHA-256 of the canonical JSON of what determines a run."""
    return hashlib.sha256(canonical_json(determining).encode()).hexdigest()[:ID_LENGTH]


def canonical_json(value: Any) -> str:
    """The one text of a value: keys sorted, no spaces, no NaN; equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
