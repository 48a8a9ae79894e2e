"""Flags of the command line, made of dataclasses: each setting and its help is written once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, field, fields, make_dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import tyro

from headwise.described import field_docs, summary_of
from headwise.errors import ConfigError

T = TypeVar("T")

_SCHEDULE = float | str | tuple[float | str, ...]
_CONFIG = (tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)


def asked(kind: type[T], argv: Sequence[str], command: str) -> T:
    """What the words of the command line say, as a dataclass; its docstring is the description."""
    flags = _flags(kind)
    found = tyro.cli(
        flags,
        prog=f"headwise {command}",
        description=summary_of(kind),
        args=_with_numbers([kind], argv),
        config=_CONFIG,
    )
    return kind(**vars(found))


def asked_in_groups(
    kinds: Mapping[str, type[Any]], argv: Sequence[str], command: str, description: str
) -> dict[str, Any]:
    """The flags of several dataclasses at once; the help shows each under its name."""
    parts = [(name, _flags(kind)) for name, kind in kinds.items() if fields(kind)]
    found: Any = tyro.cli(
        make_dataclass("Flags", parts),
        prog=f"headwise {command}",
        description=description,
        args=_with_numbers(kinds.values(), argv),
        config=_CONFIG,
    )
    return {
        name: kind(**vars(getattr(found, name))) if fields(kind) else kind()
        for name, kind in kinds.items()
    }


def words_by_flag(argv: Sequence[str]) -> dict[str, list[str]]:
    """The words of the command line by the name of their flag: `--no-x` counts as `x`."""
    return dict(_by_flag(argv))


def _by_flag(argv: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The words of each flag with its name, in their order; words before any have none."""
    found: list[tuple[str, list[str]]] = []
    for word in argv:
        if word.startswith("--") and len(word) > len("--"):
            name = word[2:].partition("=")[0].replace("-", "_").removeprefix("no_")
            found.append((name, []))
        elif not found:
            found.append(("", []))
        found[-1][1].append(word)
    return found


def value_of(argv: Sequence[str], flag: str) -> str | None:
    """The last value of a flag that takes one, before it is known what flags there are."""
    words = words_by_flag(argv).get(flag)
    if not words:
        return None
    first, *others = words
    return first.partition("=")[2] or (others[0] if others else None)


def _with_numbers(kinds: Iterable[type[Any]], argv: Sequence[str]) -> list[str]:
    """The words of the command line, with a whole number like 1e4 written out.

    What should be a number and is none is refused here: tyro would tell of its own attempts.
    """
    hints = {name: hint for kind in kinds for name, hint in _hints(kind).items()}
    words = []
    for name, (first, *others) in _by_flag(argv):
        flag, equals, value = first.partition("=")
        given = ([value] if equals else []) + others
        number = _number_of(hints.get(name))
        if number is not None and name:
            several = len(given) if _is_several(hints[name]) else 1
            given[:several] = [_written_out(flag, word, number) for word in given[:several]]
        if not given and bool in get_args(hints.get(name)):  # a switch that takes words too
            first, given = f"--{name}", [str(not flag.startswith("--no-"))]
        words += [f"{flag}={given.pop(0)}" if equals else first, *given]
    return words


def _number_of(hint: Any) -> type[int] | type[float] | None:
    """The kind of number that a flag takes; None if it takes something else as well."""
    leaves = {hint} if not get_args(hint) else set()
    for one in get_args(hint):
        leaves.add(_number_of(one) if get_origin(one) is tuple else one)
    leaves -= {type(None), Ellipsis}
    if leaves and leaves <= {int, float}:
        return float if float in leaves else int
    return None


def _is_several(hint: Any) -> bool:
    return any(get_origin(one) is tuple for one in (hint, *get_args(hint)))


def _written_out(flag: str, word: str, kind: type[int] | type[float]) -> str:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if kind is float and (value == value or word.lower() == "nan"):
        return word
    if kind is int and value.is_integer():
        return word if word.lstrip("+-").replace("_", "").isdigit() else str(int(value))
    allowed = "a number" if kind is float else "a whole number, for example 10000 or 1e4"
    raise ConfigError(f"{flag} cannot be this", got=word, allowed=allowed)


def _flags(kind: type[Any]) -> type[Any]:
    """A dataclass of the same fields for tyro, with help in flowing lines and short types."""
    hints, helps = _hints(kind), field_docs(kind)
    parts: list[Any] = []
    for one in fields(kind):
        if _is_a_graph(hints[one.name]):
            continue  # for Python alone: words on a line do not say which of them belong together
        told = tyro.conf.arg(
            help=helps.get(one.name),
            metavar=_metavar(hints[one.name]),
            help_behavior_hint="" if one.default in (None, ()) else None,
        )
        default = {} if one.default is MISSING else {"default": one.default}
        parts.append((one.name, Annotated[hints[one.name], told], field(**default)))
    made = make_dataclass(kind.__name__, parts, kw_only=True)
    made.__doc__ = summary_of(kind)
    return made


def _is_a_graph(hint: Any) -> bool:
    """Whether it is several words by name, such as the parents of heads."""
    dicts = [get_args(one) for one in (hint, *get_args(hint)) if get_origin(one) is dict]
    return any(get_origin(values) is tuple for _, values in dicts)


def _hints(kind: type[Any]) -> dict[str, Any]:
    """Annotations with the marks that are for tyro, and without others such as `PerMember`'s."""
    marked = get_type_hints(kind, include_extras=True)
    ours = {name for name, hint in marked.items() if any(map(_is_for_tyro, _marks(hint)))}
    plain = {name: _typed(hint) for name, hint in get_type_hints(kind).items()}
    return plain | {name: marked[name] for name in ours}


def _typed(hint: Any) -> Any:
    """An annotation without functions, which cannot be typed: what is left of a schedule."""
    takes_functions = any(get_origin(one) is Callable for one in get_args(hint))
    return _SCHEDULE if takes_functions else hint


def _marks(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _is_for_tyro(mark: object) -> bool:
    return type(mark).__module__.partition(".")[0] == "tyro"


def _metavar(hint: Any) -> str | None:
    """A word for the values of a flag, where tyro's own would be a riddle."""
    if get_origin(hint) is Annotated:  # its owner has one
        return None
    if hint == _SCHEDULE:
        return "FLOAT|linear_FLOAT [...]"
    several = [hint, *get_args(hint)]
    if any(get_origin(one) is dict for one in several):
        return "INT | HEAD INT [HEAD INT ...]"
    for one in several:
        if get_origin(one) is tuple:
            kind = get_args(one)[0]
            words = "|".join(get_args(kind)) if get_origin(kind) is Literal else ""
            name = words or kind.__name__.upper()
            return f"{name} ..." if words else f"{name} [{name} ...]"
    return None
