"""Diagrams as SVG, on light and on dark pages: boxes by kind, and arrows between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
KINDS = ("state", "net", "chance", "action", "value", "weight", "op")
SCHEMES = {
    "light": {
        "state": "#dbe7fb", "net": "#ffffff", "chance": "#fdf6cf", "action": "#dcf1dd",
        "value": "#fbe6cf", "weight": "#eaddf5", "op": "#ffffff",
        "ink": "#1c2330", "line": "#5b6676", "card": "#f7f8fa",
    },
    "dark": {
        "state": "#25406b", "net": "#2b313d", "chance": "#554a16", "action": "#22502d",
        "value": "#6a431d", "weight": "#48305f", "op": "#2b313d",
        "ink": "#e8ebf0", "line": "#8d99ab", "card": "#1d222b",
    },
}  # fmt: skip


class Box(NamedTuple):
    """A box and the middle of where it stands; what follows a # in its name is not shown."""

    name: str
    kind: str
    x: float
    y: float

    @property
    def text(self) -> str:
        """What is written in it."""
        return self.name.split("#")[0]

    @property
    def half(self) -> tuple[float, float]:
        """Half of its width and height."""
        return (11.0, 11.0) if self.kind == "op" else (9.0 + 3.4 * len(self.text), 13.0)


class Panel(NamedTuple):
    """One drawing of a diagram."""

    title: str
    x: float
    y: float
    boxes: Sequence[Box]
    arrows: Sequence[tuple[str, str]]


def write(
    stem: str, label: str, size: tuple[int, int], panels: Sequence[Panel], note: str = ""
) -> list[Path]:
    """Writes a diagram for light and for dark pages, and returns where."""
    paths = []
    for scheme in SCHEMES:
        paths.append(ASSETS / f"{stem}-{scheme}.svg")
        paths[-1].write_text(svg(label, size, panels, note, SCHEMES[scheme]), encoding="utf-8")
    return paths


def svg(
    label: str,
    size: tuple[int, int],
    panels: Sequence[Panel],
    note: str,
    colors: Mapping[str, str],
) -> str:
    """The text of the picture."""
    width, height = size
    fills = "".join(f".{kind}{{fill:{colors[kind]}}}" for kind in KINDS)
    drawn = "\n".join(_panel(panel) for panel in panels)
    below = f'\n<text x="16" y="{height - 12}">{escape(note)}</text>' if note else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(label)}">\n<style>text{{font:12px sans-serif;fill:{colors["ink"]}}}'
        f".title{{font-weight:bold}}rect,path{{stroke:{colors['line']}}}"
        f".edge{{fill:none;marker-end:url(#tip)}}{fills}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8Z" fill="{colors["line"]}"/></marker></defs>\n'
        f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="10" '
        f'fill="{colors["card"]}" style="stroke:none"/>\n{drawn}{below}\n</svg>\n'
    )


def _panel(panel: Panel) -> str:
    by_name = {box.name: box for box in panel.boxes}
    parts = [f'<text class="title" x="8" y="18">{escape(panel.title)}</text>']
    for first, second in panel.arrows:
        (x1, y1) = _border(by_name[first], by_name[second])
        (x2, y2) = _border(by_name[second], by_name[first])
        parts.append(f'<path class="edge" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>')
    for box in panel.boxes:
        half, tall = box.half
        parts.append(
            f'<rect class="{box.kind}" x="{box.x - half:.1f}" y="{box.y - tall:.1f}" '
            f'width="{2 * half:.1f}" height="{2 * tall:.1f}" rx="{11 if box.kind == "op" else 4}"/>'
            f'<text x="{box.x:g}" y="{box.y + 4:g}" text-anchor="middle">{escape(box.text)}</text>'
        )
    return f'<g transform="translate({panel.x:g} {panel.y:g})">{"".join(parts)}</g>'


def _border(box: Box, towards: Box) -> tuple[float, float]:
    """Where the line from the middle of a box to another leaves it."""
    half, tall = box.half
    dx, dy = towards.x - box.x, towards.y - box.y
    part = min(half / abs(dx) if dx else 1e9, tall / abs(dy) if dy else 1e9)
    return box.x + part * dx, box.y + part * dy
