"""Names for things: register once, look up with a suggestion when the name is misspelt."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from types import MappingProxyType
from typing import Generic, ParamSpec, TypeVar

from headwise.described import described
from headwise.errors import ConfigError
from headwise.foreign_names import AT_LEARN, suggestion

P = ParamSpec("P")
T = TypeVar("T")
_NOTHING: Mapping[str, str] = MappingProxyType({})


def unknown(
    kind: str, name: object, known: Iterable[str], instead: Mapping[str, str] = _NOTHING
) -> ConfigError:
    """The error for an unregistered name; the known name that may be meant comes first.

    Args:
        kind: What it should be the name of.
        name: What was given.
        known: All names that there are.
        instead: What to do instead, as a sentence, for names that stand for none of those.
    """
    names = sorted(known)
    return ConfigError(
        f"unknown {kind}",
        got=repr(name),
        hint=nearest(str(name), names, instead),
        allowed=", ".join(names) or "none",
    )


def nearest(name: str, known: Sequence[str], instead: Mapping[str, str] = _NOTHING) -> str | None:
    """A question for the known name that is meant elsewhere by this one, or is spelt like it."""
    if (there := suggestion(name, known)) is not None:
        return there
    if name in instead:
        return instead[name]
    by_letters = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), by_letters, n=1)
    return f"Did you mean {by_letters[close[0]]!r}?" if close else None


def known_keywords(function: Callable[P, T]) -> Callable[P, T]:
    """A decorator that answers an unknown keyword as an unknown setting is answered."""
    names = [name for name in inspect.signature(function).parameters if name != "self"]

    @functools.wraps(function)
    def checked(*args: P.args, **given: P.kwargs) -> T:
        for name in given:
            if name not in names:
                raise unknown(f"argument of {function.__name__}", name, names, AT_LEARN)
        return function(*args, **given)

    return checked


class Registry(Generic[T]):
    """An ordered table of named things of one kind.

    Args:
        kind: What is listed, in the singular; it appears in messages ("unknown algorithm ...").
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator that files the decorated thing under `name`; `help()` lists its settings."""

        def file(entry: T) -> T:
            if name in self._entries and not _again(self._entries[name], entry):
                raise ConfigError(
                    f"{self.kind} {name!r} is registered twice",
                    got=entry,
                    fix="Choose another name.",
                )
            self._entries[name] = entry
            if isinstance(entry, type) and is_dataclass(entry):
                described(entry)
            return entry

        return file

    def get(self, name: str) -> T:
        """The thing filed under `name`, in whatever case it is written: "PPO" is "ppo"."""
        if isinstance(name, str):
            if name in self._entries:
                return self._entries[name]
            alike = [
                entry for known, entry in self._entries.items() if known.lower() == name.lower()
            ]
            if len(alike) == 1:
                return alike[0]
        raise unknown(self.kind, name, self._entries)

    def names(self) -> list[str]:
        """All names, in the order of registration."""
        return list(self._entries)

    def items(self) -> Iterator[tuple[str, T]]:
        """All (name, thing) pairs, in the order of registration."""
        return iter(self._entries.items())

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)


def _again(before: object, now: object) -> bool:
    """Whether two things are one definition that was run twice: in a notebook, a study's file."""
    places = [[getattr(x, a, None) for a in ("__module__", "__qualname__")] for x in (before, now)]
    return None not in places[0] and places[0] == places[1]
