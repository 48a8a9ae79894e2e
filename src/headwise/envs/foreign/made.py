"""How a user's environment was made, by its own attributes: to tell it from another of its kind.

A snapshot goes back to a whole environment, settings and all. Put into one that was made otherwise
(another level, another map), it would silently make that the old one again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

Made: TypeAlias = dict[str, dict[str, str]]
"""The public attributes of an environment and of what is inside it, by type and name, as JSON."""

_LOOKS = ("render_mode",)
"""Attributes that say how it is watched, and nothing of what happens in it."""


def made_as(env: Any) -> Made:
    """The attributes that are plain values: numbers, words, and tuples of them."""
    return {
        type(layer).__name__: {
            name: told
            for name, value in getattr(layer, "__dict__", {}).items()
            if not name.startswith("_") and name not in _LOOKS and (told := _plain(value))
        }
        for layer in _layers(env)
    }


def in_common(made: Sequence[Made]) -> Made:
    """What is the same in all of them."""
    first, *others = made
    return {
        kind: {
            name: told
            for name, told in named.items()
            if all(other.get(kind, {}).get(name) == told for other in others)
        }
        for kind, named in first.items()
    }


def difference(ours: Made, theirs: Made) -> str:
    """What is otherwise in ours than in theirs, in words; nothing if they are the same."""
    if list(ours) != list(theirs):
        return f"{' of '.join(ours)} and not {' of '.join(theirs)}"
    return ", ".join(
        f"{name}={ours[kind][name]} and not {told}"
        for kind, named in theirs.items()
        for name, told in named.items()
        if ours[kind].get(name, told) != told
    )


def _layers(env: Any) -> Iterator[Any]:
    yield env
    while isinstance(env, gym.Wrapper):
        env = env.env
        yield env


def _plain(value: Any) -> str:
    """A plain value as JSON; nothing for all others."""
    if isinstance(value, np.generic):
        value = value.item()
    parts = value if isinstance(value, tuple) else (value,)
    if not all(part is None or isinstance(part, bool | int | float | str) for part in parts):
        return ""
    return json.dumps(value)
