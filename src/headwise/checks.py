"""Checks that all settings share, made before anything runs.

Numbers and lists of NumPy are as good as Python's own: they are taken as such, so that what is kept
is plain, and the same settings have the same text and the same run id wherever they came from.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeGuard, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from headwise.errors import ConfigError, HeadwiseError
from headwise.registry import unknown

MAX_SEED = 2**64 - 1
MAX_MEMBERS = 100_000
"""More than fit anywhere: who says so many means a seed."""
MAX_STEPS = 10**15
"""More than any run will take; counters of steps are 64 bits wide."""

_ROWS = tuple[float, ...]
_ASKED: dict[Any, tuple[str, str | None]] = {
    bool: ("a yes or no", "True, False"),
    int: ("a count", "whole numbers from 1; a few settings take 0, too"),  # see `check_counts`
    float: ("a number", None),
    str: ("a word", None),
    _ROWS: ("a number, or one for each member", "0.1 or (0.1, 0.2)"),
    tuple[int, ...]: ("a list of whole numbers from 1", "(64,) is one, (64, 64) are two"),
    tuple[str, ...]: ("a list of names", "('one', 'other')"),
}
"""What a setting must be, by its annotation, and what would do."""


def checked_count(
    name: str,
    value: object,
    least: int = 1,
    most: int | None = None,
    *,
    error: type[HeadwiseError] = ConfigError,
) -> int:
    """A number of things that a user gave, as Python has it.

    Args:
        name: What it is the number of, as the message calls it.
        value: What was given: a whole number, of Python or of NumPy.
        least: The smallest that is allowed.
        most: The largest, if there is one.
        error: What is raised where it is none.
    """
    number = plain(value)
    if not is_whole(number) or number < least or (most is not None and number > most):
        raise error(
            f"{name} must be a count",
            got=value,
            allowed=f"whole numbers from {least}" + (f" to {most:,}" if most else ""),
        )
    return int(number)


def optional_count(name: str, value: object, least: int = 1) -> int | None:
    """`checked_count` of a number that need not be given: None stays None."""
    return None if value is None else checked_count(name, value, least)


def checked_steps(name: str, value: object) -> int:
    """A number of environment steps that a user gave; 1e6 is one, as people write it."""
    number = plain(value)
    whole = int(number) if isinstance(number, float) and number.is_integer() else value
    steps = checked_count(name, whole)
    if steps > MAX_STEPS:
        raise ConfigError(f"{name} is out of range", got=value, allowed=f"up to {MAX_STEPS:.0e}")
    return steps


def optional_steps(name: str, value: object) -> int | None:
    """`checked_steps` of a number that need not be given: None stays None."""
    return None if value is None else checked_steps(name, value)


def checked_switch(name: str, value: object, *, fix: str | None = None) -> bool:
    """A yes or no that a user gave. A word is none: "no" would count as True."""
    switch = plain(value)
    if not isinstance(switch, bool):
        raise ConfigError(f"{name} is a switch", got=value, allowed="True or False", fix=fix)
    return switch


def checked_seed(
    value: object, name: str = "a seed", *, error: type[HeadwiseError] = ConfigError
) -> int:
    """A seed that a user gave, as Python has it: 64 bits, of Python or of NumPy."""
    number = plain(value)
    if not is_whole(number) or not 0 <= number <= MAX_SEED:
        raise error(
            f"{name} must be a whole number", got=value, allowed="whole numbers from 0 to 2^64 - 1"
        )
    return int(number)


def check_settings(settings: Any) -> None:
    """Makes the settings of a dataclass plain, and refuses those of another kind than they say.

    What is allowed is read from the annotations: `Literal`, `bool`, `int` (from 0), `float`, a
    number or one for each member, tuples of words, tuples of `int` (from 1), and these with None.
    Settings of other types are left to their owner, except that no number may be infinite.
    """
    kinds = setting_kinds(settings)
    for field in fields(settings):
        value = plain(getattr(settings, field.name))
        object.__setattr__(settings, field.name, value)
        _check_kind(_label(settings, field.name), value, kinds[field.name])


def setting_kinds(settings: Any) -> dict[str, tuple[Any, ...]]:
    """What each setting of a dataclass may be, by its annotation: `float | None` are two kinds."""
    kind: object = type(settings)  # to mypy, a class of dataclasses has no hash
    return _kinds(kind)


def check_counts(settings: Any, *names: str, least: int = 1, most: int | None = None) -> None:
    """Refuses settings that are not whole numbers from `least` (to `most`)."""
    for name in names:
        checked_count(_label(settings, name), getattr(settings, name), least, most)


def is_whole(value: object) -> TypeGuard[int | np.integer[Any]]:
    """Whether it is a whole number, of Python or of NumPy; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """A value without NumPy in it: its numbers as Python's, its arrays and all lists as tuples."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def _check_kind(label: str, value: Any, kinds: tuple[Any, ...]) -> None:
    """Refuses a plain value that is of none of these kinds, or a number that is not finite."""
    if not any(_fits(value, kind) for kind in kinds):
        words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
        if words:
            words += ["True", "False"] if bool in kinds else []
            raise unknown(f"value of {label}", value, map(str, words))
        many = kinds[0] is float and any(get_origin(kind) is tuple for kind in kinds)
        what, allowed = _ASKED.get(_ROWS if many else kinds[0], ("of another kind", None))
        raise ConfigError(f"{label} must be {what}", got=value, allowed=allowed)
    for number in value if isinstance(value, tuple) else (value,):
        if is_number(number) and not abs(number) <= sys.float_info.max:  # nor is NaN
            raise ConfigError(f"{label} is out of range", got=value, allowed="finite numbers")


def _fits(value: Any, kind: Any) -> bool:
    """Whether a plain value is of a kind; kinds that are not known here are their owner's."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        fitting = isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
        return fitting and (inner[0] is not int or 0 not in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(one, inner[1]) for one in value.values())
    if kind is int:
        return is_whole(value) and bool(value >= 0)
    if kind is float:
        return is_number(value)
    return isinstance(value, kind) if kind in (bool, str, type(None)) else True


@cache
def _kinds(kind: type[Any]) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(kind)
    return {field.name: _alternatives(hints[field.name]) for field in fields(kind)}


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number of Python; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _label(settings: Any, name: str) -> str:
    return f"{settings.name} setting {name!r}"


def all_true(flags: NDArray[np.bool_]) -> bool:
    """Whether no flag is False; for few of them, asking the array takes many times as long."""
    return b"\0" not in flags.tobytes()
