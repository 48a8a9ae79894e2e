"""Settings that follow the rest of a run: a learning rate that falls, a clip range that narrows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from headwise.checks import is_number, plain
from headwise.errors import ConfigError

Schedule: TypeAlias = Callable[[float], float]
"""A setting by what remains of the run: 1 at its beginning, 0 at its end."""

INTERVALS = 1000
"""A function is asked at the ends of so many equal parts of a run; between them is a line."""
_LINES = ("linear", "lin")
ALLOWED = "3e-4, 'linear', 'linear_3e-4', a function of what remains of the run (1 to 0)"


@dataclass(frozen=True)
class Table:
    """A schedule as numbers, which can be kept: a line between equally distant points of the run.

    Args:
        values: At the beginning, ..., at the end.
    """

    values: tuple[float, ...] = field(repr=False)

    def __call__(self, remaining: float) -> float:
        """The value when so much of the run remains."""
        at = (1.0 - remaining) * (len(self.values) - 1)
        low = min(int(at), len(self.values) - 2)
        first, second = self.values[low : low + 2]
        return first + (second - first) * (at - low)

    def __repr__(self) -> str:
        return f"Table({self.values[0]:g} to {self.values[-1]:g})"


def plain_schedule(label: str, value: Any, default: float) -> Any:
    """What a user gave for a setting that may follow the run, in the form that can be kept.

    A number stays one; a line is a word that says where it begins, `linear_0.0003`; a function
    becomes a table.

    Args:
        label: What messages call the setting.
        value: For all members, or a tuple with one for each.
        default: Where a line begins that does not say.
    """
    value = plain(value)
    if isinstance(value, tuple):
        return tuple(plain_schedule(label, one, default) for one in value)
    if isinstance(value, str):
        return f"linear_{_line(label, value, default)!r}"
    if isinstance(value, Table) or is_number(value):
        return value
    if isinstance(value, Mapping):  # from a file
        values = value.get("values")
        given = tuple(values) if isinstance(values, list | tuple) else ()
        if set(value) != {"values"} or len(given) < 2:
            raise _refused(label, value)
        return Table(tuple(_number(label, one, at=None) for one in given))
    if callable(value):
        points = [1.0 - i / INTERVALS for i in range(INTERVALS + 1)]
        return Table(tuple(_asked(label, value, remaining) for remaining in points))
    raise _refused(label, value)


def value_at(value: Any, remaining: float) -> Any:
    """A plain setting when so much of the run remains; of members one for each."""
    if isinstance(value, tuple):
        return tuple(value_at(one, remaining) for one in value)
    if isinstance(value, str):
        return float(value.partition("_")[2]) * remaining
    return value(remaining) if isinstance(value, Table) else value


def is_scheduled(value: Any) -> bool:
    """Whether a plain setting follows the run, for any member."""
    if isinstance(value, tuple):
        return any(map(is_scheduled, value))
    return isinstance(value, str | Table)


def extremes(value: Any) -> list[float]:
    """The numbers of a plain setting, and of each schedule the one that is least allowed.

    A line falls to 0, which is an end and no setting, so it counts by where it begins; a table by
    its greatest value, as long as none is negative.
    """
    if isinstance(value, tuple):
        return [number for one in value for number in extremes(one)]
    if isinstance(value, Table):
        return [min(value.values) if min(value.values) < 0.0 else max(value.values)]
    return [value_at(value, 1.0)]


def as_json(value: Any) -> Any:
    """A plain setting as JSON has it; `plain_schedule` reads it."""
    if isinstance(value, tuple):
        return [as_json(one) for one in value]
    return {"values": list(value.values)} if isinstance(value, Table) else value


def _line(label: str, word: str, default: float) -> float:
    """Where a line begins."""
    kind, has_start, start = word.partition("_")
    if kind not in _LINES or (has_start and not start):
        raise _refused(label, word)
    try:
        found = float(start) if has_start else float(default)
    except ValueError:
        raise _refused(label, word) from None
    return _number(label, found, at=None)


def _asked(label: str, schedule: Schedule, remaining: float) -> float:
    try:
        value: Any = schedule(remaining)
        value = value.item() if hasattr(value, "item") else value
    except Exception as error:
        raise ConfigError(
            f"the schedule of {label} fails where {remaining:g} of the run remains",
            got=f"{type(error).__name__}: {error}",
            allowed="a function of one number from 1 to 0",
        ) from error
    return _number(label, value, at=remaining)


def _number(label: str, value: Any, *, at: float | None) -> float:
    if not is_number(value) or not math.isfinite(value):
        where = "" if at is None else f" where {at:g} of the run remains"
        raise ConfigError(
            f"the schedule of {label} gives no number{where}", got=value, allowed="finite numbers"
        )
    return float(value)


def _refused(label: str, value: object) -> ConfigError:
    return ConfigError(
        f"{label} must be a number or a schedule, or one for each member", got=value,
        allowed=ALLOWED,
    )  # fmt: skip
