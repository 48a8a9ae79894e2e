"""The strings under the fields of dataclasses, for `help()` and for the command line."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import MISSING, Field, fields
from itertools import pairwise
from typing import Any, TypeVar

T = TypeVar("T")


def field_docs(kind: type[Any]) -> dict[str, str]:
    """The strings under the fields of a dataclass and of its bases, by name, each on one line."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        except (OSError, TypeError):  # it was not written in a file
            continue
        assert isinstance(body, ast.ClassDef)
        for one, after in pairwise(body.body):
            if isinstance(one, ast.AnnAssign) and isinstance(after, ast.Expr):
                found[ast.unparse(one.target)] = " ".join(ast.literal_eval(after.value).split())
    return found


def summary_of(kind: type[Any]) -> str:
    """The docstring of a class without the list of its settings."""
    own = vars(kind).get("__doc__")
    return own.summary if isinstance(own, _Described) else inspect.getdoc(kind) or ""


def described(kind: type[T]) -> type[T]:
    """A decorator for dataclasses: `help()` shows every setting, its default and its meaning.

    The list is read from the source on first use, not at import.
    """
    kind.__doc__ = _Described(kind, summary_of(kind))  # type: ignore[assignment]
    return kind


class _Described:
    """The docstring of a dataclass, with its settings below what its author wrote."""

    def __init__(self, kind: type[Any], summary: str) -> None:
        self.kind, self.summary = kind, summary
        self._text: str | None = None

    def __get__(self, instance: object, owner: type[Any]) -> str:
        if owner is not self.kind:
            return self.summary
        if self._text is None:
            docs = field_docs(self.kind)
            lines = [_entry(one, docs.get(one.name, "")) for one in fields(self.kind)]
            self._text = "\n".join([self.summary, "", "Args:", *lines]) if lines else self.summary
        return self._text


def _entry(one: Field[Any], text: str) -> str:
    """A setting as `help()` shows it: its name, what it does, and its default."""
    default = "" if one.default is MISSING else f" Default: {one.default!r}."
    return textwrap.fill(
        f"{one.name}: {text}{default}",
        width=88,
        initial_indent="    ",
        subsequent_indent="        ",
        break_on_hyphens=False,
    )
