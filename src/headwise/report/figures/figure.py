"""What a figure shows, as plain data: the page and the printed figure are drawn from the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from headwise.report.statistics.aggregates import Array


@dataclass(frozen=True)
class Series:
    """A line of a panel with its band."""

    key: str
    """What it stands for: a factorization, a view; chooses the color and is what is filtered."""
    label: str
    y: Array
    low: Array | None = None
    high: Array | None = None
    dash: str = "solid"
    num_runs: int = 0
    error: Array | None = None
    """The standard error of the mean."""


@dataclass(frozen=True)
class Lines:
    """Curves over a common x."""

    title: str
    x: Array
    series: tuple[Series, ...]
    x_label: str = ""
    y_label: str = ""
    references: tuple[tuple[str, float], ...] = ()
    """Horizontal lines, with names."""
    tags: dict[str, str] = field(default_factory=dict)
    """What the panel is about, for filters: environment, algorithm, view."""
    markers: bool = False
    """Whether the points are few and each is to be seen."""


@dataclass(frozen=True)
class Dot:
    """A number with its interval, in a row of its own."""

    key: str
    label: str
    value: float
    low: float
    high: float
    num_runs: int = 0


@dataclass(frozen=True)
class Intervals:
    """Rows of numbers with intervals."""

    title: str
    dots: tuple[Dot, ...]
    x_label: str = ""
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Point:
    """A point of a scatter, with an interval in y."""

    key: str
    label: str
    x: float
    y: float
    low: float
    high: float
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scatter:
    """Points; x is logarithmic, costs differ by factors."""

    title: str
    points: tuple[Point, ...]
    x_label: str = ""
    y_label: str = ""
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Heat:
    """A matrix of numbers in color, NaN where there is none."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Array
    texts: tuple[tuple[str, ...], ...]
    """What each entry says when it is pointed at."""
    low: float = 0.0
    high: float = 1.0
    row_tags: tuple[dict[str, str], ...] = ()
    column_tags: tuple[dict[str, str], ...] = ()
    tags: dict[str, str] = field(default_factory=dict)


Panel: TypeAlias = Lines | Intervals | Scatter | Heat


@dataclass(frozen=True)
class Figure:
    """A figure of one or several panels."""

    name: str
    """Names its files."""
    section: str
    """The part of the page it belongs to."""
    title: str
    caption: str
    panels: tuple[Panel, ...]
    columns: int = 3
    """Panels in a row."""


def plain(figure: Figure) -> dict[str, Any]:
    """A figure as JSON-ready data; numbers have four digits, which is more than can be seen."""
    return {
        "name": figure.name,
        "columns": figure.columns,
        "panels": [{"kind": type(p).__name__.lower(), **_plain(vars(p))} for p in figure.panels],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    if isinstance(value, float):
        return float(f"{value:.4g}") if np.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key != "error"}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return _plain(vars(value))
    return value
