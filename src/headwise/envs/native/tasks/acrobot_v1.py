"""Acrobot: two links hanging from a bar, the motor at the elbow, and the line to be reached."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.canvas import (
    BLUE,
    GREEN,
    INK,
    LINE,
    MUTED,
    ORANGE,
    RED,
    STONE,
    WIDTH,
    Canvas,
    frame,
    readings,
)
from headwise.envs.native.drawing import Scene
from headwise.envs.native.info import NativeInfo, Reference
from headwise.envs.scripted import Floats, Policy, Settings
from headwise.spaces import ActionSpec

_LINK, _TOP = 76.0, 228.0


def draw(canvas: Canvas, scene: Scene) -> None:
    """Draws the scene."""
    frame(canvas, scene, "Acrobot", "Swing the free end above the line; each step costs 1.")
    first, second = (float(scene.state[part]) for part in ("theta1", "theta2"))
    bar = (WIDTH / 2, _TOP)
    elbow = (bar[0] + _LINK * math.sin(first), bar[1] + _LINK * math.cos(first))
    both = first + second
    end = (elbow[0] + _LINK * math.sin(both), elbow[1] + _LINK * math.cos(both))
    reached = end[1] < _TOP - _LINK
    canvas.dashes([(x, _TOP - _LINK) for x in range(120, 481, 6)], GREEN if reached else MUTED, 1.5)
    canvas.text((484, _TOP - _LINK), "the line", 11, GREEN if reached else MUTED)
    canvas.ring(bar, 2 * _LINK, LINE)
    canvas.line([bar, elbow], STONE, 10)
    canvas.line([elbow, end], ORANGE, 10)
    canvas.circle(bar, 7, INK)
    canvas.circle(elbow, 7, BLUE)
    canvas.circle(end, 6, GREEN if reached else INK)
    torque = "no step yet"
    if scene.last is not None:
        option = int(scene.last.action["torque"])
        torque = ("-1", "0", "+1")[option]
        color = (RED, MUTED, BLUE)[option]
        canvas.text((elbow[0] + 14, elbow[1]), torque, 12, color, bold=True)
    readings(
        canvas,
        (24, 74),
        [
            ("first link", f"{math.degrees(first):+.1f}°"),
            ("elbow", f"{math.degrees(second):+.1f}°"),
            ("torque", torque),
        ],
    )


def pump_at_the_elbow(spec: ActionSpec, settings: Settings) -> Policy:
    """Drives the elbow on while it opens, and against the swing of the first link."""

    def act(obs: Floats) -> NDArray[np.float32]:
        return 2.0 * (obs[:, 5:] > obs[:, 4:5]).astype(np.float32)

    return act


ENV = NativeInfo(
    frames_per_second=15,
    draw=draw,
    reference=Reference(
        how="scripted, pumps at the elbow in time with the swing",
        policy=pump_at_the_elbow,
        measured={
            ("", "discrete"): (-498.83, 0.092, 16384, -84.108, 0.17, 16384),
        },
    ),
)
