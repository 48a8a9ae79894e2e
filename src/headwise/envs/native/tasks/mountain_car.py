"""MountainCar: the valley, the car in it, and the flag on the right hill."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.canvas import (
    BLUE,
    GREEN,
    INK,
    LIGHT_BLUE,
    LIGHT_STONE,
    MUTED,
    STONE,
    Canvas,
    Point,
    frame,
    readings,
)
from headwise.envs.native.drawing import Scene
from headwise.envs.native.info import NativeInfo, Reference
from headwise.envs.scripted import Floats, Policy, Settings
from headwise.spaces import ActionSpec

_ACROSS, _LEFT, _FLOOR = 310.0, -1.2, 378.0


def draw(canvas: Canvas, scene: Scene) -> None:
    """Draws the scene."""
    draw_valley(canvas, scene, 0.5, 0.0 if scene.last is None else scene.last.action["push"] - 1)


def draw_valley(canvas: Canvas, scene: Scene, goal: float, push: float) -> None:
    """Draws the scene, with the flag at `goal` and a push from -1 to 1."""
    frame(canvas, scene, scene.name, "Gain speed in the valley to reach the flag.")
    position, velocity = (float(scene.state[part]) for part in ("position", "velocity"))
    hills = [_place(_LEFT + 1.8 * share / 90) for share in range(91)]
    canvas.shape([*hills, (hills[-1][0], 400), (hills[0][0], 400)], LIGHT_STONE)
    canvas.line(hills, STONE, 2)
    x, y = _place(goal)
    canvas.line([(x, y), (x, y - 44)], INK, 2)
    canvas.shape([(x, y - 44), (x + 22, y - 37), (x, y - 30)], GREEN)
    slope = math.atan(0.972 * math.cos(3 * position))
    x, y = _place(position)
    along, up = (math.cos(slope), -math.sin(slope)), (-math.sin(slope), -math.cos(slope))

    def beside(far: float, high: float) -> Point:
        return x + far * along[0] + high * up[0], y + far * along[1] + high * up[1]

    body = [beside(-20, 6), beside(20, 6), beside(20, 18), beside(-20, 18)]
    canvas.shape(body, LIGHT_BLUE)
    canvas.line([*body, body[0]], BLUE, 1.5)
    for far in (-11, 11):
        canvas.circle(beside(far, 5), 5, INK)
    way = 26 if push > 0 else -26
    canvas.arrow(beside(way, 12), beside(way + 40 * push, 12), BLUE, 3)
    rows = [("position", f"{position:+.3f}"), ("velocity", f"{velocity:+.4f}")]
    readings(canvas, (200, 76), [*rows, ("push", f"{push:+.2f}")])
    canvas.text((346, 112), "of 0.001" if goal == 0.5 else "of 0.0015", 11, MUTED)


def _place(position: float) -> Point:
    height = math.sin(3 * position) * 0.45 + 0.55
    return 21.0 + (position - _LEFT) * _ACROSS, _FLOOR - 0.72 * height * _ACROSS


def push_along(spec: ActionSpec, settings: Settings) -> Policy:
    """Pushes the way it goes, and turns around early where it will not make the hill anyway."""

    def act(obs: Floats) -> NDArray[np.float32]:
        x = obs[:, :1] + 0.5
        turn = -0.00155 + 0.0363 * x + 0.008 * x**2 - 0.0561 * x**3
        return np.where(obs[:, 1:] > turn, np.float32(2), np.float32(0))

    return act


ENV = NativeInfo(
    frames_per_second=30,
    draw=draw,
    reference=Reference(
        how="scripted, pushes the way it goes and turns around early",
        policy=push_along,
        measured={
            ("", "discrete"): (-200, 0, 16384, -105.54, 0.087, 16384),
        },
    ),
)
