"""MountainCarContinuous: MountainCar's valley, with the flag a little lower."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.canvas import Canvas
from headwise.envs.native.drawing import Scene
from headwise.envs.native.info import NativeInfo, Reference
from headwise.envs.native.tasks.mountain_car import draw_valley
from headwise.envs.scripted import Floats, Policy, Settings
from headwise.spaces import ActionSpec


def draw(canvas: Canvas, scene: Scene) -> None:
    """Draws the scene."""
    draw_valley(canvas, scene, 0.45, 0.0 if scene.last is None else scene.last.action["push"])


def push_gently(spec: ActionSpec, settings: Settings) -> Policy:
    """Pushes the way it goes, no harder than it takes to get there in time."""

    def act(obs: Floats) -> NDArray[np.float32]:
        return np.where(obs[:, 1:] >= 0, np.float32(0.2), np.float32(-0.2))

    return act


ENV = NativeInfo(
    frames_per_second=30,
    draw=draw,
    reference=Reference(
        how="scripted, pushes gently the way it goes; less than 100 is the most there is",
        policy=push_gently,
        measured={
            ("", "continuous"): (-33.06, 0.04, 16384, 98.59, 0.00094, 16384),
        },
    ),
)
