"""Loading a study: its file is run, and asked for the study that it defines."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from headwise.errors import ConfigError, HeadwiseError
from headwise.registry import unknown
from headwise.study.source import find_study, run_file
from headwise.study.study import Study


def load_study(path_or_name: str | Path, **arguments: Any) -> Study:
    """The study that a file defines: what its function `make` returns, or its `study`.

    Args:
        path_or_name: "mine/study.py", or "paper" for that file in ./studies or of the library.
        **arguments: For `make`: `smoke=True`, and whatever else the study offers.
    """
    path = find_study(path_or_name)
    module = load_file(path)
    make = getattr(module, "make", None)
    if callable(make):
        _check_arguments(path, make, arguments)
        with _troubles_of(path):
            study = make(**arguments)
    elif arguments:
        raise ConfigError(
            f"{path} takes no arguments: it has no function `make`", got=", ".join(arguments)
        )
    else:
        study = getattr(module, "study", None)
    if not isinstance(study, Study):
        raise ConfigError(
            f"{path} defines no study",
            got=type(study).__name__,
            allowed="`study = Study(...)`, or a function `make` that returns a Study",
        )
    return replace(study, file=path.resolve())


def load_file(path: Path) -> ModuleType:
    """Runs a file of a study, or of a report, and says in which line something went wrong."""
    with _troubles_of(path, fix=f"`python {path}` shows where it came from."):
        return run_file(path)


@contextmanager
def _troubles_of(path: Path, fix: str | None = None) -> Iterator[None]:
    """Says in which line of a study's file something went wrong."""
    try:
        yield
    except HeadwiseError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        mine = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
        where = f", at line {mine[-1]}" if mine else ""
        raise ConfigError(
            f"{path} cannot be loaded{where}",
            got=f"{type(error).__name__}: {error}",
            fix=fix,
        ) from error


def _check_arguments(path: Path, make: Callable[..., object], arguments: dict[str, Any]) -> None:
    """Refuses arguments that a function does not take, or not like this, and asks for others."""
    parameters = inspect.signature(make).parameters.values()
    hints = _hints(make)
    anything = any(p.kind is p.VAR_KEYWORD for p in parameters)
    known = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    for name, value in arguments.items():
        if name not in known and not anything:
            raise unknown(f"argument of the study {path.stem}", name, known)
        if name in hints and not _fits(value, hints[name]):
            raise ConfigError(
                f"argument {name!r} of the study {path.stem} cannot be this",
                got=repr(value),
                allowed=_words(hints[name]),
            )
    for p in parameters:
        if p.name in known and p.default is p.empty and p.name not in arguments:
            raise ConfigError(
                f"the study {path.stem} needs its argument {p.name!r}",
                allowed=_words(hints[p.name]) if p.name in hints else None,
                fix=f"Give it: --args {p.name}=VALUE.",
            )


def _hints(make: Callable[..., object]) -> dict[str, Any]:
    """What kinds of arguments a function asks for, as far as it says so."""
    try:
        return get_type_hints(make)
    except (NameError, TypeError):  # names that only a type checker knows
        return {}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that is asked for; containers are not searched.

    Arguments come from a command line, where whatever is not a Python literal is text.
    """
    if hint is Any:
        return True
    kind = get_origin(hint) or hint
    if kind is Literal:
        return any(value == word and type(value) is type(word) for word in get_args(hint))
    if kind in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if not isinstance(kind, type):  # nothing to be told from
        return True
    if kind in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if kind is float else kind)


def _words(hint: Any) -> str:
    """What is asked for, as it is written."""
    if get_origin(hint) is Literal:
        return ", ".join(map(repr, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(map(_words, get_args(hint)))
    if hint is type(None):
        return "None"
    return hint.__name__ if type(hint) is type else str(hint).replace("typing.", "")
