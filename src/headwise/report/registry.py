"""What reports are made of beyond their own: claims, figures and sections of users, and of papers.

A file with such things is named with `headwise report --with FILE`; a report never runs code that a
folder names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from headwise.errors import ConfigError

if TYPE_CHECKING:
    from headwise.report.claims.ledger import Claim
    from headwise.report.claims.measurement import Evidence
    from headwise.report.compared import Difference
    from headwise.report.figures.figure import Figure, Panel
    from headwise.report.results import Results
    from headwise.report.runs import StudyRuns
    from headwise.report.tables.table import Table

SHIPPED = ("headwise.studies.paper.register",)
"""Modules of the library that register more; read before the first report is made."""
YOURS = "Yours"
"""The section of what says no other."""
Asking: TypeAlias = "Callable[[Results], Difference]"
Drawing: TypeAlias = "Callable[[Results], Panel | Sequence[Panel]]"
Telling: TypeAlias = "Callable[[Results], str]"
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class OwnClaim:
    """A claim of a user."""

    text: str
    low: float
    high: float
    alike: float
    group: str
    ask: Asking


@dataclass(frozen=True)
class OwnFigure:
    """A figure of a user."""

    title: str
    caption: str
    section: str
    draw: Drawing


@dataclass(frozen=True)
class OwnSection:
    """A part of the page, with what is said in it."""

    name: str
    tell: Telling | str


@dataclass
class Registered:
    """All that is registered, by the names of the functions: one of the same name replaces it."""

    claims: dict[str, OwnClaim] = field(default_factory=dict)
    figures: dict[str, OwnFigure] = field(default_factory=dict)
    sections: dict[str, OwnSection] = field(default_factory=dict)

    def clear(self) -> None:
        """Forgets everything."""
        for part in vars(self).values():
            part.clear()


own = Registered()


@dataclass(frozen=True)
class Extension:
    """What a publication adds to reports: what it claims, and how its own studies are shown."""

    claims: Callable[[Evidence], Iterable[Claim]]
    """What it says of such runs, whether or not they can answer it."""
    takes: Callable[[StudyRuns], bool]
    """Whether a study is of a kind of its own, and no sweep."""
    read: Callable[[StudyRuns], Iterable[object]]
    """Such a study, as the others here know it."""
    figures: Callable[[Evidence], Iterable[Figure]]
    tables: Callable[[Evidence], Iterable[Table]]
    steps: Callable[[str, str, str], int | None]
    """The environment steps of its runs, by environment, view and algorithm."""
    sections: Mapping[str, str]
    """The parts of the page that are its own, with what is said in each."""


_extensions: dict[str, Extension] = {}


def extend(name: str, extension: Extension) -> None:
    """Adds to reports what a publication brings; the same name again replaces it."""
    _extensions[name] = extension


def extensions() -> list[Extension]:
    """Those of the library, and others that were added."""
    for module in SHIPPED:
        import_module(module)
    return list(_extensions.values())


def published_steps(env: str, view: str, algorithm: str) -> int | None:
    """The environment steps that runs had where such were published; None where none were."""
    found = (extension.steps(env, view, algorithm) for extension in extensions())
    return next((steps for steps in found if steps is not None), None)


def claim(
    text: str,
    *,
    above: float | None = None,
    below: float | None = None,
    alike: float = 0.0,
    group: str = YOURS,
) -> Callable[[Function], Function]:
    """Puts a claim into the ledger of reports, by a function that measures it.

    The function is given the `Results` of a report and returns a difference of two choices from
    them. Whether the claim holds follows from its interval.

    Example:
        >>> from headwise.report import claim
        >>> @claim("VDN beats shared PPO.", above=0.0, alike=0.05)
        ... def vdn_beats_shared(results):
        ...     ppo = results.where(algorithm="ppo")
        ...     return ppo.where(factorization="vdn") - ppo.where(factorization="shared")

    Args:
        text: The claim as a sentence.
        above: It is true for differences above this ...
        below: ... and below this; one of them is enough.
        alike: The smallest difference that matters, fixed beforehand.
        group: What it is about.
    """
    if above is None and below is None:
        raise ConfigError(
            "a claim must say for which differences it is true",
            got=repr(text),
            allowed="above=0.0, below=0.1, or both",
        )
    low, high = -inf if above is None else above, inf if below is None else below
    if not low < high or alike < 0:
        raise ConfigError(
            "a claim that nothing can meet",
            got=f"above={above}, below={below}, alike={alike}",
            allowed="above less than below, and alike of 0 or more",
        )

    def register(ask: Function) -> Function:
        own.claims[_name(ask)] = OwnClaim(text, low, high, alike, group, ask)
        return ask

    return register


def figure(
    title: str, *, caption: str = "", section: str = YOURS
) -> Callable[[Function], Function]:
    """Puts a figure into reports, by a function that draws it.

    The function is given the `Results` of a report and returns panels, such as `lines` and `dots`
    make. It raises a `ConfigError` if there is nothing to draw, and the figure is left out.

    Args:
        title: Above it.
        caption: Below the title.
        section: The part of the page.
    """

    def register(draw: Function) -> Function:
        own.figures[_name(draw)] = OwnFigure(title, caption, section, draw)
        return draw

    return register


def section(name: str) -> Callable[[Function], Function]:
    """Puts a part into the page of reports, with the text that a function returns.

    Args:
        name: Its title; figures that say this section are in it.
    """

    def register(tell: Function) -> Function:
        own.sections[name] = OwnSection(name, tell)
        return tell

    return register


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", "") or repr(function))
