"""What is wrong with a step, by slot: the only place that looks slot by slot.

A step is checked as a whole. Only if a check fails is it looked at here; what then turns out to be
nothing but unusual (a reward that is an array of one number) is made usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.envs.foreign.codec import EnvCodec
from headwise.errors import EnvError, SpaceError

Where = Callable[[int], str]
_TRUTHS = (bool, np.bool_)


def returned(where: str, length: int, result: Any, call: str) -> EnvError:
    """An environment that returned something else than Gymnasium's values."""
    values = "(obs, info)" if length == 2 else "(obs, reward, terminated, truncated, info)"
    return EnvError(
        f"{where}: {call}() returned something else than Gymnasium's {length} values",
        got=f"{len(result)} values" if isinstance(result, tuple) else result,
        allowed=values,
        fix="Bring it up to Gymnasium's API of today; shimmy wraps older environments.",
    )


def flag(where: Where, slot: int, name: str, value: Any) -> bool:
    """Whether an episode has ended, as a truth; "False", None, NaN and 0.5 are none."""
    if isinstance(value, _TRUTHS):
        return bool(value)
    try:
        array = np.asarray(value)
        if array.size == 1 and array.dtype.kind in "biuf" and array.item() in (0, 1):
            return bool(array.item())
    except (TypeError, ValueError):
        pass
    raise EnvError(f"{where(slot)}: {name} is not a bool", got=repr(value), allowed="True or False")


def ends(where: Where, slot: int, terminated: Any, truncated: Any) -> tuple[bool, bool]:
    """Both flags of a step."""
    return flag(where, slot, "terminated", terminated), flag(where, slot, "truncated", truncated)


def flags(where: Where, name: str, values: Any, number: int) -> NDArray[np.bool_]:
    """The truths of so many slots of a vector environment."""
    array = np.asarray(values)
    if array.dtype == np.bool_ and array.shape == (number,):
        return array
    if array.shape[:1] == (number,):
        return np.array([flag(where, slot, name, value) for slot, value in enumerate(array)])
    raise EnvError(f"{name} has the wrong shape", got=array.shape, allowed=f"({number},)")


def number(where: str, reward: Any) -> float:
    """A reward as a number, finite or not."""
    try:
        if not isinstance(reward, str | bytes):
            return float(reward.item() if isinstance(reward, np.ndarray) else reward)
    except (TypeError, ValueError, OverflowError):
        pass
    raise EnvError(f"{where}: the reward is not a number", got=reward, allowed="numbers")


def observations(codec: EnvCodec, rows: Iterable[Any], where: Where) -> None:
    """Refuses the first observation that does not fit; there may be none."""
    for slot, obs in enumerate(rows):
        try:
            codec.flatten(obs)
        except SpaceError as error:
            raise SpaceError(f"{where(slot)}: {error}") from error
        for path, keys, dtype in codec.observations.places:
            value = obs
            for key in keys:
                value = value[key]
            array = np.asarray(value)
            if dtype.kind in "iub" and not np.array_equal(array.astype(dtype), array):
                raise SpaceError(
                    f"{where(slot)}: the observation at {path!r} does not fit its space's type",
                    got=f"{array.dtype} that {dtype} would change",
                    allowed=str(dtype),
                    fix="Give the Box the dtype that is shown, or show the dtype of the Box.",
                )


def masks(codec: EnvCodec, rows: Iterable[Any], present: NDArray[Any], where: Where) -> None:
    """Refuses the first mask that does not fit."""
    for slot, mask in enumerate(rows):
        if present[slot]:
            try:
                codec.legal(mask)
            except EnvError as error:
                raise EnvError(f"{where(slot)}: {error}") from error


def not_finite(name: str, flat: NDArray[Any], codec: EnvCodec, place: Callable[[int], str]) -> None:
    """Refuses the first number of flat observations (N, O) that is not finite; if there is one."""
    wrong = ~np.isfinite(flat)
    for part in codec.obs_spec.packed:
        wrong[:, part] = False
    bad = np.argwhere(wrong)
    if not len(bad):
        return
    row, entry = map(int, bad[0])
    places = codec.obs_spec.slices.items()
    path = next(path for path, part in places if part.start <= entry < part.stop)
    raise EnvError(
        f"{name}: the observation at {path!r} in {place(row)} is not finite",
        got=flat[row, entry],
        allowed="finite numbers that fit float32",
    )


def bad_reward(name: str, given: NDArray[Any], place: Callable[[int], str]) -> None:
    """Refuses the first reward that is not finite as float32; if there is one."""
    with np.errstate(over="ignore"):
        bad = np.flatnonzero(~np.isfinite(given.astype(np.float32)))
    if not len(bad):
        return
    row = int(bad[0])
    wrong = "too large for float32" if np.isfinite(given[row]) else "not finite"
    raise EnvError(
        f"{name}: the reward in {place(row)} is {wrong}",
        got=given[row],
        allowed="finite numbers that fit float32",
    )
