"""CartPole: the cart on its track, the pole on the cart, and the push."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.canvas import (
    BLUE,
    INK,
    LIGHT_BLUE,
    LINE,
    MUTED,
    ORANGE,
    RED,
    WIDTH,
    Canvas,
    frame,
    readings,
)
from headwise.envs.native.drawing import Scene
from headwise.envs.native.info import NativeInfo, Reference
from headwise.envs.scripted import Floats, Policy, Settings
from headwise.spaces import ActionSpec

_METER, _FLOOR, _EDGE, _POLE = 110.0, 320.0, 2.4, 1.0
_FALLEN = math.radians(12)


def draw(canvas: Canvas, scene: Scene) -> None:
    """Draws the scene."""
    frame(canvas, scene, "CartPole", "Keep the pole up and the cart on its track.")
    x, x_dot, theta, theta_dot = (
        float(scene.state[part]) for part in ("x", "x_dot", "theta", "theta_dot")
    )
    left, right = (WIDTH / 2 + side * _EDGE * _METER for side in (-1, 1))
    canvas.line([(left, _FLOOR), (right, _FLOOR)], LINE, 3)
    for end, words in ((left, "-2.4"), (WIDTH / 2, "0"), (right, "2.4")):
        canvas.line([(end, _FLOOR - 6), (end, _FLOOR + 6)], MUTED, 1.5)
        canvas.text((end, _FLOOR + 16), words, 10, MUTED, "mm")
    at = (WIDTH / 2 + x * _METER, _FLOOR - 26.0)

    def above(angle: float) -> tuple[float, float]:
        return (
            at[0] + math.sin(angle) * _POLE * _METER,
            at[1] - math.cos(angle) * _POLE * _METER,
        )

    for angle in (-_FALLEN, _FALLEN):
        canvas.dashes([_between(at, above(angle), share / 20) for share in range(21)], LINE)
    canvas.box((at[0] - 34, at[1]), (68, 26), LIGHT_BLUE, BLUE, 1.5, 4)
    canvas.line([at, above(theta)], ORANGE if abs(theta) <= _FALLEN else RED, 9)
    canvas.circle(at, 5, INK)
    if scene.last is not None:
        way = 1 if scene.last.action["push"] else -1
        canvas.arrow((at[0] + 38 * way, at[1] + 13), (at[0] + 72 * way, at[1] + 13), BLUE, 3)
    readings(
        canvas,
        (24, 74),
        [
            ("position", f"{x:+.3f}"),
            ("velocity", f"{x_dot:+.3f}"),
            ("angle", f"{math.degrees(theta):+.2f}°"),
            ("turning", f"{math.degrees(theta_dot):+.1f}°/s"),
        ],
    )


def _between(
    start: tuple[float, float], end: tuple[float, float], share: float
) -> tuple[float, float]:
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


def push_under_the_pole(spec: ActionSpec, settings: Settings) -> Policy:
    """Pushes to where the pole leans and is about to lean, and a little away from the edges."""

    def act(obs: Floats) -> NDArray[np.float32]:
        return (obs @ [[0.1], [0.2], [1.0], [0.25]] > 0).astype(np.float32)

    return act


ENV = NativeInfo(
    frames_per_second=50,
    draw=draw,
    reference=Reference(
        how="scripted, pushes the cart under the pole; 500 is the most there is",
        policy=push_under_the_pole,
        measured={
            ("", "discrete"): (22.299, 0.094, 16384, 500, 0, 16384),
        },
    ),
)
