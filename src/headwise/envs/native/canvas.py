"""What all pictures share: a canvas with smooth edges, a palette, and the frame around a task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.drawing import Scene

Point = tuple[float, float]

WIDTH, HEIGHT, HEADER = 600, 400, 52
_FINER = 3
"""Pictures are drawn this much larger and then shrunk, which smooths every edge."""

PAPER = "#fbfaf7"
PANEL = "#f1efe9"
LINE = "#d9d6cc"
FAINT = "#e9e6de"
MUTED = "#7d8790"
INK = "#22303c"
BLUE = "#2f6db3"
LIGHT_BLUE = "#d3e2f2"
ORANGE = "#e08a2e"
LIGHT_ORANGE = "#fae6cd"
GREEN = "#2f9e62"
LIGHT_GREEN = "#d2eddc"
RED = "#cf4456"
STONE = "#8c7b6b"
LIGHT_STONE = "#c9bdb0"


class Canvas:
    """A picture in the making. Coordinates are in its own pixels, from the upper left."""

    def __init__(self, width: int = WIDTH, height: int = HEIGHT) -> None:
        from PIL import Image, ImageDraw

        self._image = Image.new("RGB", (width * _FINER, height * _FINER), PAPER)
        self._draw = ImageDraw.Draw(self._image)

    def pixels(self) -> NDArray[np.uint8]:
        """The picture as an array (height, width, 3)."""
        return np.array(self._image.reduce(_FINER))

    def line(self, points: Sequence[Point], color: str, width: float = 1.0) -> None:
        """A line through points, with round joints."""
        self._draw.line(_finer(points), color, max(1, round(width * _FINER)), joint="curve")

    def dashes(self, points: Sequence[Point], color: str, width: float = 1.0) -> None:
        """Every other piece of a line through many points."""
        for start, end in zip(points[::2], points[1::2], strict=False):
            self.line([start, end], color, width)

    def circle(
        self,
        center: Point,
        radius: float,
        fill: str | None = None,
        outline: str | None = None,
        width: float = 1.0,
    ) -> None:
        """A disc, a ring or both."""
        x, y = center
        corners = _finer([(x - radius, y - radius), (x + radius, y + radius)])
        self._draw.ellipse(corners, fill, outline, max(1, round(width * _FINER)))

    def ring(self, center: Point, radius: float, color: str, width: float = 1.0) -> None:
        """A dashed circle."""
        pieces = max(24, round(radius))
        pieces += pieces % 2
        angles = [2 * math.pi * piece / pieces for piece in range(pieces + 1)]
        self.dashes(
            [(center[0] + radius * math.cos(a), center[1] + radius * math.sin(a)) for a in angles],
            color,
            width,
        )

    def box(
        self,
        corner: Point,
        size: Point,
        fill: str | None = None,
        outline: str | None = None,
        width: float = 1.0,
        radius: float = 0.0,
    ) -> None:
        """A rectangle, with round corners if asked for."""
        (x, y), (w, h) = corner, size
        corners = _finer([(x, y), (x + w, y + h)])
        line = max(1, round(width * _FINER))
        self._draw.rounded_rectangle(corners, radius * _FINER, fill, outline, line)

    def shape(self, points: Sequence[Point], fill: str) -> None:
        """A filled polygon."""
        self._draw.polygon(_finer(points), fill)

    def arrow(self, start: Point, end: Point, color: str, width: float = 2.0) -> None:
        """An arrow; nothing if it has no length."""
        dx, dy = end[0] - start[0], end[1] - start[1]
        length = math.hypot(dx, dy)
        if length < 1.0:
            return
        ux, uy = dx / length, dy / length
        head = min(3.0 * width, length)
        neck = (end[0] - head * ux, end[1] - head * uy)
        self.line([start, neck], color, width)
        left = (neck[0] - 0.6 * head * uy, neck[1] + 0.6 * head * ux)
        right = (neck[0] + 0.6 * head * uy, neck[1] - 0.6 * head * ux)
        self.shape([end, left, right], color)

    def cross(self, center: Point, size: float, color: str, width: float = 2.0) -> None:
        """A cross that strikes something out."""
        x, y = center
        self.line([(x - size, y - size), (x + size, y + size)], color, width)
        self.line([(x - size, y + size), (x + size, y - size)], color, width)

    def tick(self, center: Point, size: float, color: str, width: float = 2.0) -> None:
        """A mark that says: done."""
        x, y = center
        points = [(x - size, y), (x - 0.3 * size, y + 0.7 * size), (x + size, y - 0.8 * size)]
        self.line(points, color, width)

    def text(
        self,
        at: Point,
        words: str,
        size: float = 12,
        color: str = INK,
        anchor: str = "lm",
        *,
        bold: bool = False,
    ) -> None:
        """Words; the anchor is Pillow's: l, m or r across, then a, m or s down."""
        (x, y) = _finer([at])[0]
        weight = max(1, round(size * _FINER / 40)) if bold else 0
        font = _font(round(size * _FINER))
        self._draw.text((x, y), words, color, font, anchor, stroke_width=weight, stroke_fill=color)


def frame(canvas: Canvas, scene: Scene, title: str, task: str) -> None:
    """The head of every picture: what it is, what is wanted, how far it is and how it went."""
    last, elapsed = scene.last, int(scene.state["elapsed"])
    canvas.text((16, 18), title, 16, bold=True)
    canvas.text((16, 39), task, 11, MUTED)
    canvas.line([(0, HEADER), (WIDTH, HEADER)], LINE)
    step = f"step {elapsed}" + (f" of {scene.limit}" if scene.limit else "")
    if last is not None and (last.terminated or last.truncated):
        words, color = ("terminated", INK) if last.terminated else ("truncated", MUTED)
        canvas.box((WIDTH - 180, 10), (76, 17), color, radius=8)
        canvas.text((WIDTH - 142, 18), words, 11, PAPER, "mm")
    canvas.text((WIDTH - 16, 18), step, 12, INK, "rm")
    if last is None:
        canvas.text((WIDTH - 16, 39), "start of an episode", 11, MUTED, "rm")
        return
    canvas.text((WIDTH - 16, 39), f"return {scene.episode_return:+.2f}", 12, INK, "rm")
    canvas.text((WIDTH - 108, 39), f"reward {last.reward:+.2f}", 12, sign_color(last.reward), "rm")


def sign_color(number: float) -> str:
    """Green for a gain, red for a loss."""
    return GREEN if number > 1e-6 else RED if number < -1e-6 else MUTED


def legend(canvas: Canvas, at: Point, rows: Sequence[tuple[str, str]]) -> None:
    """Colors and what they mean, one below the other."""
    x, y = at
    for row, (color, words) in enumerate(rows):
        canvas.circle((x + 5, y + 18 * row), 4.5, color)
        canvas.text((x + 17, y + 18 * row), words, 11, INK)


def readings(canvas: Canvas, at: Point, rows: Sequence[tuple[str, str]]) -> None:
    """What is measured and how much it is, one below the other."""
    x, y = at
    for row, (words, value) in enumerate(rows):
        canvas.text((x, y + 18 * row), words, 11, MUTED)
        canvas.text((x + 130, y + 18 * row), value, 12, INK, "rm")


def option_driven(value: float, options: int, low: float, high: float) -> int:
    """The option that a number in [low, high] drives, as the engine has it."""
    return min(int((value - low) / (high - low) * options), options - 1)


def bin_value(option: float, options: int, low: float, high: float) -> float:
    """The number that a bin stands for when both ends are bins."""
    return low + option * (high - low) / (options - 1)


def _finer(points: Sequence[Point]) -> list[Point]:
    return [(x * _FINER, y * _FINER) for x, y in points]


@cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)  # the one Pillow brings, so pictures are alike everywhere
