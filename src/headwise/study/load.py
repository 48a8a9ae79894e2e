"""Finding a study: a Python file, by its path or by its name in ./studies."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from headwise.errors import ConfigError
from headwise.registry import unknown
from headwise.study.study import Study

FOLDER = Path("studies")


def find_study(path_or_name: str | Path) -> Path:
    """The file of a study."""
    path = Path(path_or_name)
    for candidate in (path, FOLDER / f"{path_or_name}.py"):
        if candidate.is_file() and candidate.suffix == ".py":
            return candidate
    names = sorted(file.stem for file in FOLDER.glob("*.py")) if FOLDER.is_dir() else []
    if path.suffix == ".py" or not names:
        raise ConfigError(
            "there is no such study",
            got=str(path_or_name),
            allowed="the path of a Python file, or the name of one in ./studies",
        )
    raise unknown("study", str(path_or_name), names)


def load_study(path_or_name: str | Path, **arguments: Any) -> Study:
    """The study that a file defines: what its function `make` returns, or its `study`.

    Args:
        path_or_name: "studies/paper.py", or "paper" for that file in ./studies.
        **arguments: For `make`: `smoke=True`, and whatever else the study offers.
    """
    path = find_study(path_or_name)
    module = _load_module(path)
    make = getattr(module, "make", None)
    if callable(make):
        known = list(inspect.signature(make).parameters)
        hints = _hints(make)
        for name, value in arguments.items():
            if name not in known:
                raise unknown(f"argument of the study {path.stem}", name, known)
            if name in hints and not _fits(value, hints[name]):
                raise ConfigError(
                    f"argument {name!r} of the study {path.stem} cannot be this",
                    got=repr(value),
                    allowed=_words(hints[name]),
                )
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
    return study


def _hints(make: Callable[..., object]) -> dict[str, Any]:
    """What kinds of arguments a function asks for, as far as it says so."""
    try:
        return get_type_hints(make)
    except (NameError, TypeError):  # names that only a type checker knows
        return {}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that is asked for; nobody looks into containers.

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


def _load_module(path: Path) -> Any:
    name = f"headwise_study_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # studies may share files beside them
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module
