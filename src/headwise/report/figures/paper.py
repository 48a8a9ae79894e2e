"""Draws a figure with matplotlib, as PNG and PDF; the same data gives the same bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Sheet
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from headwise.files import replace_file
from headwise.registry import unknown
from headwise.report.figures.figure import Figure, Heat, Intervals, Lines, Panel, Scatter
from headwise.report.names import color

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "legend.frameon": False,
    "text.parse_math": False,  # names come from files, and a $ in one is a $
    "pdf.fonttype": 42,  # text stays text, so that it can be searched and edited
}
_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_MARKERS = {"ppo": "o", "sac": "s", "dqn": "^"}
_WIDTH, _HEIGHT = 2.5, 1.9


FORMATS = ("png", "pdf")
# Dates and versions would make every writing another file.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}


def save(figure: Figure, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Writes NAME.png, NAME.pdf, or both: once drawn, so that a full disk breaks no drawing."""
    for kind in formats:
        if kind not in FORMATS:
            raise unknown("format of figures", kind, FORMATS)
    if not formats:
        return []
    with mpl.rc_context(STYLE):
        sheet = _draw(figure)
        paths = [folder / f"{figure.name}.{kind}" for kind in formats]
        for path, kind in zip(paths, formats, strict=True):
            drawn = io.BytesIO()
            sheet.savefig(drawn, format=kind, dpi=160, metadata=_METADATA[kind])
            replace_file(path, drawn.getvalue())
    return paths


def _draw(figure: Figure) -> Sheet:
    """Matplotlib finds the margins itself: labels are of any length."""
    columns = max(1, min(figure.columns, len(figure.panels)))
    rows = -(-len(figure.panels) // columns)
    width, height = _size(figure, columns, rows)
    sheet = Sheet(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(sheet)
    axes = sheet.subplots(rows, columns, squeeze=False).ravel().tolist()
    for place, axis in enumerate(axes):
        if place < len(figure.panels):
            _panel(axis, figure.panels[place], first=place % columns == 0)
        else:
            axis.set_axis_off()
    handles: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        across = max(1, min(len(handles), int(width / (0.5 + 0.058 * _longest(list(handles))))))
        sheet.set_figheight(height + 0.16 * (-(-len(handles) // across) - 1))
        sheet.legend(
            list(handles.values()), list(handles), loc="outside lower center", fontsize=7,
            ncols=across,
        )  # fmt: skip
    return sheet


def _size(figure: Figure, columns: int, rows: int) -> tuple[float, float]:
    """Inches: room for the panels, and for the longest labels that stand beside them."""
    first = figure.panels[0] if figure.panels else None
    if isinstance(first, Heat):
        heats = [panel for panel in figure.panels if isinstance(panel, Heat)]
        wide = max(0.42 * len(p.columns) + 0.05 * _longest(p.rows) for p in heats)
        tall = max(0.27 * len(p.rows) + 0.05 * _longest(p.columns) for p in heats)
        return columns * (1.0 + wide), rows * (0.6 + tall)
    scale = 2.2 if columns == 1 else 1.4 if columns == 2 else 1.0
    across, down = _WIDTH * scale, _HEIGHT * min(scale, 1.6)
    dots = [dot.label for p in figure.panels if isinstance(p, Intervals) for dot in p.dots]
    if dots:
        most = max(len(p.dots) for p in figure.panels if isinstance(p, Intervals))
        across, down = max(across, 1.7 + 0.06 * _longest(dots)), max(down, 0.6 + 0.14 * most)
    return columns * across, rows * down + 0.4


def _longest(labels: Sequence[str]) -> int:
    return max(map(len, labels), default=0)


def _panel(axis: Axes, panel: Panel, first: bool) -> None:
    axis.set_title(panel.title)
    if isinstance(panel, Lines):
        _lines(axis, panel, first)
    elif isinstance(panel, Intervals):
        _intervals(axis, panel)
    elif isinstance(panel, Scatter):
        _scatter(axis, panel)
    else:
        _heat(axis, panel)


def _lines(axis: Axes, panel: Lines, first: bool) -> None:
    for label, level in panel.references:
        axis.axhline(level, color="#999999", linewidth=0.7, linestyle=(0, (1, 2)))
        axis.annotate(
            label, (1, level), xycoords=("axes fraction", "data"), ha="right", va="bottom",
            fontsize=5.5, color="#777777",
        )  # fmt: skip
    for series in panel.series:
        if not np.isfinite(series.y).any():
            continue
        tint = color(series.key)
        axis.plot(
            panel.x, series.y, color=tint, linestyle=_DASHES[series.dash], linewidth=1.2,
            label=series.label, marker="o" if panel.markers else None, markersize=3,
        )  # fmt: skip
        if series.low is not None and series.high is not None:
            axis.fill_between(panel.x, series.low, series.high, color=tint, alpha=0.15, linewidth=0)
    axis.set_xlabel(panel.x_label)
    if first or not panel.references:
        axis.set_ylabel(panel.y_label)
    if panel.x.size and panel.x[-1] > 5000:
        axis.ticklabel_format(axis="x", style="sci", scilimits=(3, 6))
    if not any(np.isfinite(series.y).any() for series in panel.series):
        _missing(axis)


def _intervals(axis: Axes, panel: Intervals) -> None:
    for place, dot in enumerate(reversed(panel.dots)):
        axis.plot([dot.low, dot.high], [place, place], color=color(dot.key), linewidth=3, alpha=0.5)
        axis.plot(dot.value, place, "o", color=color(dot.key), markersize=4)
    axis.set_yticks(range(len(panel.dots)), [dot.label for dot in reversed(panel.dots)])
    axis.set_xlabel(panel.x_label)
    axis.margins(y=0.15)
    if not panel.dots:
        _missing(axis)


def _scatter(axis: Axes, panel: Scatter) -> None:
    if not panel.points:
        _missing(axis)
        axis.set_xlabel(panel.x_label)
        return
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.7g}"))
    axis.xaxis.set_minor_locator(NullLocator())
    for point in panel.points:
        tint = color(point.key)
        marker = _MARKERS.get(point.tags.get("algorithm", ""), "o")
        axis.plot([point.x, point.x], [point.low, point.high], color=tint, linewidth=1, alpha=0.5)
        axis.plot(
            point.x, point.y, marker, color=tint, markersize=4.5, linestyle="none",
            label=point.label,
        )  # fmt: skip
    axis.margins(x=0.2)
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(panel.y_label)


def _heat(axis: Axes, panel: Heat) -> None:
    axis.grid(visible=False)
    shown = np.ma.masked_invalid(panel.values)
    axis.imshow(shown, cmap="viridis", vmin=panel.low, vmax=panel.high, aspect="auto")
    for (i, j), value in np.ndenumerate(panel.values):
        if np.isfinite(value):
            bright = value > (panel.low + panel.high) / 2 + 0.1
            axis.text(
                j, i, f"{value:.2f}", ha="center", va="center", fontsize=5.5,
                color="black" if bright else "white",
            )  # fmt: skip
        elif panel.texts[i][j]:  # it was run, and no episode has ended
            axis.text(j, i, "·", ha="center", va="center", fontsize=8)
    axis.set_xticks(range(len(panel.columns)), panel.columns, rotation=60, ha="right", fontsize=6)
    axis.set_yticks(range(len(panel.rows)), panel.rows, fontsize=6)


def _missing(axis: Axes) -> None:
    axis.text(0.5, 0.5, "not yet measured", ha="center", va="center", transform=axis.transAxes,
              color="#888888")  # fmt: skip
    axis.set_xticks([])
    axis.set_yticks([])
