"""Pendulum: the pendulum, how it moves, and the torque at its joint."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.canvas import (
    BLUE,
    GREEN,
    INK,
    LINE,
    ORANGE,
    WIDTH,
    Canvas,
    frame,
    readings,
)
from headwise.envs.native.drawing import Scene
from headwise.envs.native.info import NativeInfo, Reference
from headwise.envs.scripted import Floats, Policy, Settings
from headwise.spaces import ActionSpec

_LENGTH, _JOINT = 118.0, (WIDTH / 2, 226.0)


def draw(canvas: Canvas, scene: Scene) -> None:
    """Draws the scene."""
    frame(canvas, scene, "Pendulum", "Swing it up and hold it there, with little torque.")
    theta, speed = (float(scene.state[part]) for part in ("theta", "theta_dot"))
    torque = 0.0 if scene.last is None else scene.last.action["torque"]
    canvas.ring(_JOINT, _LENGTH, LINE)
    canvas.circle((_JOINT[0], _JOINT[1] - _LENGTH), 5, None, GREEN, 2)
    end = (_JOINT[0] - _LENGTH * math.sin(theta), _JOINT[1] - _LENGTH * math.cos(theta))
    canvas.line([_JOINT, end], ORANGE, 16)
    canvas.circle(end, 8, ORANGE)
    canvas.circle(_JOINT, 6, INK)
    # The torque as a piece of a circle around the joint, a quarter turn for each unit.
    steps = max(2, round(abs(torque) * 12))
    arc = [
        (_JOINT[0] - 34 * math.sin(angle), _JOINT[1] - 34 * math.cos(angle))
        for angle in (torque * math.pi / 2 * step / steps for step in range(steps + 1))
    ]
    if abs(torque) > 0.05:
        canvas.line(arc, BLUE, 3)
        canvas.arrow(arc[-2], _beyond(arc[-2], arc[-1], 9), BLUE, 3)
    turned = (theta + math.pi) % (2 * math.pi) - math.pi
    readings(
        canvas,
        (24, 74),
        [
            ("off upright", f"{math.degrees(turned):+.1f}°"),
            ("turning", f"{math.degrees(speed):+.0f}°/s"),
            ("torque", f"{torque:+.2f}"),
        ],
    )


def _beyond(
    start: tuple[float, float], end: tuple[float, float], far: float
) -> tuple[float, float]:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    return end[0] + far * dx / length, end[1] + far * dy / length


def swing_up(spec: ActionSpec, settings: Settings) -> Policy:
    """Drives the swing on until it has the energy to get up, then brakes, and holds it there."""

    def act(obs: Floats) -> NDArray[np.float32]:
        cosine, sine, speed = obs.T
        angle = np.arctan2(sine, cosine)
        missing = 5.0 * (1.0 - cosine) - speed**2 / 6.0
        drive = 5.0 * missing * np.where(speed < 0, -1.0, 1.0)
        torque = np.where(np.abs(angle) < 0.5, -12.0 * angle - 3.0 * speed, drive)
        return np.asarray(np.clip(torque / 2.0, -1.0, 1.0)[:, None], dtype=np.float32)

    return act


ENV = NativeInfo(
    frames_per_second=30,
    draw=draw,
    reference=Reference(
        how="scripted, swings up by energy and holds by position and speed",
        policy=swing_up,
        measured={
            ("", "continuous"): (-1227.9, 2.2, 16384, -149.85, 0.71, 16384),
        },
    ),
)
