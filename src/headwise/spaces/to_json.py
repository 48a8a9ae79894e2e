"""Spaces and specs as JSON and back, so that a saved agent knows its actions without its env."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from gymnasium import spaces

from headwise.checks import is_whole
from headwise.errors import SpaceError
from headwise.spaces.action import ActionSpec, Choice, Condition, Range
from headwise.spaces.links import Link

_MAX_ELEMENTS = 1 << 24
_AGENTS = "agents"


def space_to_json(space: spaces.Space[Any] | Mapping[str, spaces.Space[Any]]) -> dict[str, Any]:
    """A space, or the spaces of several agents, as numbers, words, lists and dicts."""
    if isinstance(space, spaces.Dict):
        return {"dict": [[_key(key), space_to_json(part)] for key, part in space.spaces.items()]}
    if isinstance(space, Mapping):
        return {_AGENTS: [[_key(agent), space_to_json(part)] for agent, part in space.items()]}
    if isinstance(space, spaces.Tuple):
        return {"tuple": [space_to_json(part) for part in space.spaces]}
    if isinstance(space, spaces.OneOf):
        return {"one_of": [space_to_json(part) for part in space.spaces]}
    if isinstance(space, spaces.Discrete):
        return {"discrete": int(space.n), "start": int(space.start), "dtype": str(space.dtype)}
    if isinstance(space, spaces.MultiDiscrete):
        return {
            "multi_discrete": space.nvec.tolist(),
            "start": space.start.tolist(),
            "dtype": str(space.dtype),
        }
    if isinstance(space, spaces.MultiBinary):
        lone = not isinstance(space.n, tuple)
        return {"multi_binary": space.shape[0] if lone else list(space.shape)}
    if isinstance(space, spaces.Box):
        return {
            "box": list(space.shape),
            "dtype": str(space.dtype),
            "low": _numbers(space.low),
            "high": _numbers(space.high),
        }
    raise SpaceError(
        "this space has no form in JSON",
        got=space,
        allowed="Discrete, MultiDiscrete, MultiBinary, Box, Tuple, Dict, OneOf, in any nesting",
    )


def space_from_json(form: Any) -> Any:
    """Reads what `space_to_json` wrote: a space, or a dict of them by agent. Refuses all else."""
    try:
        return _built(form)
    except (
        KeyError,
        TypeError,
        ValueError,
        AssertionError,
        OverflowError,
        RecursionError,
    ) as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError(
            "this is no description of a space", got=f"{type(error).__name__}: {error}"
        ) from error


def spec_to_json(spec: ActionSpec) -> dict[str, Any]:
    """An action spec as numbers, words, lists and dicts."""
    heads = [
        {"options": head.n, "ordered": head.ordered}
        | ({} if head.level is None else {"level": head.level})
        if isinstance(head, Choice)
        else {"low": head.low, "high": head.high, "levels": head.levels}
        for head in spec.heads
    ]
    conditions = [
        None if c is None else [c.head, *_numbers(np.array([c.low, c.high]), shorten=False)]
        for c in spec.conditions
    ]
    form = {"names": list(spec.names), "heads": heads, "conditions": conditions}
    return form | ({"links": [asdict(link) for link in spec.links]} if spec.links else {})


def spec_from_json(form: Any) -> ActionSpec:
    """Reads what `spec_to_json` wrote, and refuses anything else."""
    try:
        heads = tuple(
            Choice(head["options"], bool(head["ordered"]), _level(head))
            if "options" in head
            else Range(float(head["low"]), float(head["high"]), int(head.get("levels", 0)))
            for head in form["heads"]
        )
        conditions = tuple(
            None if c is None else Condition(int(c[0]), float(c[1]), float(c[2]))
            for c in form["conditions"]
        )
        links = tuple(map(Link.of, form.get("links", ())))
        return ActionSpec(tuple(str(name) for name in form["names"]), heads, conditions, links)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError(
            "this is no description of an action", got=f"{type(error).__name__}: {error}"
        ) from error


def _level(head: Mapping[str, Any]) -> int | None:
    level = head.get("level")
    return None if level is None else int(level)


def _built(form: Any) -> Any:
    if not isinstance(form, dict):
        raise TypeError(f"{form!r} is no dict")
    if "dict" in form:
        # Pairs, because a dict would be sorted.
        parts: list[Any] = [(_key(key), _built(part)) for key, part in form["dict"]]
        return spaces.Dict(parts)
    if _AGENTS in form:
        return {_key(agent): _built(part) for agent, part in form[_AGENTS]}
    if "tuple" in form:
        return spaces.Tuple([_built(part) for part in form["tuple"]])
    if "one_of" in form:
        return spaces.OneOf([_built(part) for part in form["one_of"]])
    if "discrete" in form:
        return spaces.Discrete(
            int(form["discrete"]), start=int(form["start"]), dtype=_whole_type(form)
        )
    if "multi_discrete" in form:
        return spaces.MultiDiscrete(
            np.array(form["multi_discrete"], dtype=np.int64),
            dtype=_whole_type(form),
            start=np.array(form["start"], dtype=np.int64),
        )
    if isinstance(form.get("multi_binary"), int):
        return spaces.MultiBinary(_shape([form["multi_binary"]])[0])
    shape = _shape(form["multi_binary"] if "multi_binary" in form else form["box"])
    if "multi_binary" in form:
        return spaces.MultiBinary(shape)
    dtype = np.dtype(str(form["dtype"]))
    low, high = (_array(form[end], shape, dtype) for end in ("low", "high"))
    return spaces.Box(low, high, shape, dtype=dtype.type)


def _key(key: Any) -> str | int:
    """A key of a Dict or the name of an agent: words and whole numbers are told apart."""
    if is_whole(key):
        return int(key)
    if isinstance(key, str):
        return str(key)
    raise SpaceError(
        "this key of a Dict space has no form in JSON",
        got=repr(key),
        allowed="words and whole numbers",
        fix="Name the parts of the space by words.",
    )


def _whole_type(form: Any) -> Any:
    """The type of whole numbers; older descriptions do not tell it."""
    dtype = np.dtype(str(form.get("dtype", "int64")))
    if dtype.kind not in "iu":
        raise SpaceError("options are whole numbers", got=str(dtype))
    return dtype.type


def _shape(sizes: Any) -> tuple[int, ...]:
    shape = tuple(int(size) for size in sizes)
    if any(size < 0 for size in shape) or math.prod(shape) > _MAX_ELEMENTS:
        raise SpaceError("a space is too large", got=shape, allowed=f"{_MAX_ELEMENTS} elements")
    return shape


def _numbers(bound: np.ndarray[Any, Any], *, shorten: bool = True) -> Any:
    """One number where all are the same; infinities as words, which JSON does not have."""
    flat = bound.ravel().tolist()
    values = flat[:1] if shorten and len(set(flat)) == 1 else flat
    return [str(x) if isinstance(x, float) and not math.isfinite(x) else x for x in values]


def _array(values: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    plain = [float(x) if isinstance(x, str) else x for x in values]
    array = np.array(plain, dtype=dtype)
    return np.full(shape, array[0]) if len(plain) == 1 else array.reshape(shape)
