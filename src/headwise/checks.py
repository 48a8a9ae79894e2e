"""Checks that every dataclass of settings shares, made before anything runs."""

from __future__ import annotations

import math
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from headwise.errors import ConfigError
from headwise.registry import unknown


def check_settings(settings: Any) -> None:
    """Refuses a word that is not among those allowed, and a number that is none or not finite.

    What is allowed is read from the annotations: `Literal`, `bool`, `int` (from 0), `float`, and
    these with None. Settings of other types are left to their owner, except that no number may be
    infinite.
    """
    hints = get_type_hints(type(settings))
    for field in fields(settings):
        value, label = getattr(settings, field.name), _label(settings, field.name)
        kinds = _alternatives(hints[field.name])
        if value is None and type(None) in kinds:
            continue
        words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
        if words and value not in words:
            raise unknown(label, value, map(str, words))
        if kinds[0] is bool and not isinstance(value, bool):
            raise ConfigError(f"{label} must be a yes or no", got=value, allowed="True, False")
        if kinds[0] is int and not _is_whole(value):
            raise ConfigError(f"{label} must be a count", got=value, allowed="whole numbers from 0")
        if kinds[0] is float and not _per_member(kinds) and not _is_number(value):
            raise ConfigError(f"{label} must be a number", got=value)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise ConfigError(f"{label} is out of range", got=value, allowed="finite numbers")


def check_counts(settings: Any, *names: str, least: int = 1, most: int | None = None) -> None:
    """Refuses settings that are not whole numbers from `least` (to `most`)."""
    for name in names:
        value = getattr(settings, name)
        if not _is_whole(value) or value < least or (most is not None and value > most):
            raise ConfigError(
                f"{_label(settings, name)} must be a count",
                got=value,
                allowed=f"whole numbers from {least}" + (f" to {most:,}" if most else ""),
            )


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _per_member(kinds: tuple[Any, ...]) -> bool:
    """Whether there may be a number for each member, which the owner checks."""
    return any(get_origin(kind) is tuple for kind in kinds)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _label(settings: Any, name: str) -> str:
    return f"{settings.name} setting {name!r}"
