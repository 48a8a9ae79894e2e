"""CoopPush: particles, the boulders they push, and the landmarks to be visited."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.canvas import (
    BLUE,
    FAINT,
    GREEN,
    HEADER,
    HEIGHT,
    INK,
    LIGHT_GREEN,
    LIGHT_ORANGE,
    LIGHT_STONE,
    ORANGE,
    PAPER,
    STONE,
    WIDTH,
    Canvas,
    Point,
    frame,
)
from headwise.envs.native.drawing import Scene

_PARTICLE, _BOULDER, _VISIT = 1.0, 5.0, 6.0
_FOOTER = 30.0
_ARROW = 5.0
"""How long a particle's arrow is at full speed, in units of the world."""


def draw(canvas: Canvas, scene: Scene) -> None:
    """Draws the scene."""
    state = scene.state
    everyone = "visited" in state
    task = (
        "Together, push every boulder to all landmarks."
        if everyone
        else "Push every boulder to a landmark, whichever."
    )
    view = _View(state)
    _ground(canvas, view)
    landmarks, boulders = state["landmarks"], state["boulders"]
    for index, at in enumerate(landmarks):
        done = int(state["visited"][index].sum()) if everyone else 0
        complete = everyone and done == len(boulders)
        _landmark(canvas, view, view.place(at), complete)
        if everyone and len(boulders) > 1 and not complete:
            x, y = view.place(at)
            canvas.text((x, y + 16), f"{done} of {len(boulders)}", 11, ORANGE, "mm")
    for index, at in enumerate(boulders):
        done = int(state["visited"][:, index].sum() if everyone else state["finished"][index])
        wanted = len(landmarks) if everyone else 1
        finished = done == wanted
        x, y = view.place(at)
        canvas.circle((x, y), max(14.0, _BOULDER * view.scale), LIGHT_STONE, STONE, 2.0)
        if finished:
            canvas.tick((x, y), 8, GREEN, 3.2)
        else:
            canvas.text((x, y), f"{done}/{wanted}", 13, INK, "mm")
    for index, (at, velocity) in enumerate(
        zip(state["particles"], state["velocities"], strict=True)
    ):
        _particle(canvas, view, index, at, velocity)
    canvas.box((0, 0), (WIDTH, HEADER), PAPER)
    canvas.box((0, HEIGHT - _FOOTER), (WIDTH, _FOOTER), PAPER)
    _footer(canvas)
    frame(canvas, scene, "CoopPush", task)


class _View:
    """The part of the world that the picture shows: all of it that matters, in steps of 5."""

    def __init__(self, state: dict[str, NDArray[np.float64]]) -> None:
        points = [state[part] for part in ("landmarks", "boulders", "particles")]
        reach = [np.full((len(p), 1), r) for p, r in zip(points, (8.0, 7.0, 3.0), strict=True)]
        where, margin = np.concatenate(points), np.concatenate(reach)
        low = 5 * np.floor((where - margin).min(axis=0) / 5)
        high = 5 * np.ceil((where + margin).max(axis=0) / 5)
        self.centre = (low + high) / 2
        size = np.maximum(high - low, [48.0, 25.0])
        room = (WIDTH - 30, HEIGHT - HEADER - _FOOTER - 22)
        self.scale = float(min(room[0] / size[0], room[1] / size[1]))
        self.middle = (WIDTH / 2, (HEADER + HEIGHT - _FOOTER) / 2)

    def place(self, at: NDArray[np.float64]) -> Point:
        """The pixel of a point of the world."""
        x, y = (float(a) for a in (at - self.centre) * self.scale)
        return self.middle[0] + x, self.middle[1] - y


def _ground(canvas: Canvas, view: _View) -> None:
    canvas.box((0, HEADER), (WIDTH, HEIGHT - HEADER - _FOOTER), "#ffffff")
    step = 5.0 if view.scale > 3 else 10.0 ** math.ceil(math.log10(20 / view.scale))
    x, y = view.place(np.zeros(2))
    columns, rows = WIDTH / step / view.scale, HEIGHT / step / view.scale
    for k in range(-math.ceil(x / step / view.scale), math.ceil(columns) + 1):
        at = x + k * step * view.scale
        canvas.line([(at, HEADER), (at, HEIGHT - _FOOTER)], FAINT, 0.6)
    for k in range(-math.ceil(y / step / view.scale), math.ceil(rows) + 1):
        at = y + k * step * view.scale
        canvas.line([(0, at), (WIDTH, at)], FAINT, 0.6)


def _landmark(canvas: Canvas, view: _View, at: Point, complete: bool) -> None:
    colour, light = (GREEN, LIGHT_GREEN) if complete else (ORANGE, LIGHT_ORANGE)
    canvas.circle(at, _VISIT * view.scale, light)
    canvas.ring(at, _VISIT * view.scale, colour, 1.4)
    x, y = at
    canvas.line([(x, y + 6), (x, y - 12)], colour, 2.0)
    canvas.shape([(x, y - 13), (x + 11, y - 8.5), (x, y - 4)], colour)


def _particle(
    canvas: Canvas,
    view: _View,
    index: int,
    at: NDArray[np.float64],
    velocity: NDArray[np.float64],
) -> None:
    here, there = view.place(at), view.place(at + _ARROW * velocity)
    canvas.arrow(here, there, BLUE, 2.2)
    radius = max(7.0, _PARTICLE * view.scale)
    canvas.circle(here, radius, BLUE, "#ffffff", 1.2)
    canvas.text(here, str(index), 10, PAPER, "mm", bold=True)


def _footer(canvas: Canvas) -> None:
    y = HEIGHT - _FOOTER / 2
    canvas.line([(0, HEIGHT - _FOOTER), (WIDTH, HEIGHT - _FOOTER)], FAINT)
    rows = [
        (BLUE, "particle, and where it heads", 16),
        (STONE, "boulder: visits done", 200),
        (ORANGE, "landmark: boulder's centre inside", 330),
        (GREEN, "done", 536),
    ]
    for colour, words, x in rows:
        canvas.circle((x + 5, y), 4.5, colour)
        canvas.text((x + 15, y), words, 11, INK)
