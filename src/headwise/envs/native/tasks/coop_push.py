"""CoopPush: particles, the boulders they push, and the landmarks to be visited."""

from __future__ import annotations

import math
from collections.abc import Mapping

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
from headwise.envs.native.engine import Engine
from headwise.envs.native.info import NO_HEADS, AgentHeads, NativeInfo, Reference
from headwise.envs.scripted import Floats, Policy, Settings
from headwise.spaces import ActionSpec

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
        self.center = (low + high) / 2
        size = np.maximum(high - low, [48.0, 25.0])
        room = (WIDTH - 30, HEIGHT - HEADER - _FOOTER - 22)
        self.scale = float(min(room[0] / size[0], room[1] / size[1]))
        self.middle = (WIDTH / 2, (HEADER + HEIGHT - _FOOTER) / 2)

    def place(self, at: NDArray[np.float64]) -> Point:
        """The pixel of a point of the world."""
        x, y = (float(a) for a in (at - self.center) * self.scale)
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
    color, light = (GREEN, LIGHT_GREEN) if complete else (ORANGE, LIGHT_ORANGE)
    canvas.circle(at, _VISIT * view.scale, light)
    canvas.ring(at, _VISIT * view.scale, color, 1.4)
    x, y = at
    canvas.line([(x, y + 6), (x, y - 12)], color, 2.0)
    canvas.shape([(x, y - 13), (x + 11, y - 8.5), (x, y - 4)], color)


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
        (ORANGE, "landmark: boulder's center inside", 330),
        (GREEN, "done", 536),
    ]
    for color, words, x in rows:
        canvas.circle((x + 5, y), 4.5, color)
        canvas.text((x + 15, y), words, 11, INK)


def push_together(spec: ActionSpec, settings: Settings) -> Policy:
    """Every particle goes behind the nearest unfinished boulder and pushes it to its landmark."""
    layout = settings.get("layout", "default")
    own = layout if isinstance(layout, Mapping) else settings
    standard = LAYOUTS["default" if isinstance(layout, Mapping) else layout]
    num_boulders = len(own.get("boulders", ())) or standard[0]
    num_landmarks = len(own.get("landmarks", ())) or standard[1]
    num_particles = len({name.split("_")[1] for name in spec.names})
    directions = (
        np.array(_DIRECTIONS) / np.maximum(1.0, np.linalg.norm(_DIRECTIONS, axis=1))[:, None]
    )
    sizes = np.cumsum([4 * num_particles, 2 * num_boulders, 2 * num_landmarks])

    def act(obs: Floats) -> NDArray[np.float32]:
        parts = np.split(obs, sizes, axis=1)
        at = 25.0 * parts[0].reshape(len(obs), num_particles, 4)[..., :2]
        boulders, landmarks = (25.0 * part.reshape(len(obs), -1, 2) for part in parts[1:3])
        # A flag for each (landmark, boulder), or for each boulder when one landmark is enough.
        done = np.broadcast_to(
            parts[3].reshape(len(obs), -1, num_boulders), (len(obs), num_landmarks, num_boulders)
        )
        way = np.linalg.norm(landmarks[:, :, None] - boulders[:, None], axis=-1) + 1e6 * done
        to = np.take_along_axis(landmarks, np.argmin(way, axis=1)[..., None], axis=1) - boulders
        ahead = to / np.linalg.norm(to, axis=-1, keepdims=True)
        # Whose boulder: the nearest one that still has somewhere to go.
        far = np.linalg.norm(at[:, :, None] - boulders[:, None], axis=-1)
        mine = np.argmin(far + 1e6 * np.min(done, axis=1)[:, None], axis=2)[..., None]
        boulder, ahead = (np.take_along_axis(a, mine, axis=1) for a in (boulders, ahead))
        outward = at - boulder
        distance = np.linalg.norm(outward, axis=-1, keepdims=True)
        behind = (outward * ahead).sum(-1, keepdims=True) < -0.1 * distance
        push = ahead + 0.25 * (boulder - 6.0 * ahead - at)
        # Not behind yet: along the boulder's edge, away from where it is to go.
        outward = outward / np.maximum(distance, 1e-9)
        around = outward[..., ::-1] * (-1.0, 1.0)
        around *= np.where((around * ahead).sum(-1, keepdims=True) > 0, -1.0, 1.0)
        move = np.where(behind, push, around + (6.2 - distance) * outward)
        move = move / np.maximum(1.0, np.linalg.norm(move, axis=-1, keepdims=True))
        columns = []
        for particle in range(num_particles):
            velocity = move[:, particle]
            if f"particle_{particle}" in spec.names:
                miss = np.linalg.norm(velocity[:, None] - directions, axis=-1)
                columns.append(np.argmin(miss, axis=1)[:, None])
            else:
                columns.append(velocity)
        return np.concatenate(columns, axis=1).astype(np.float32)

    return act


LAYOUTS = {"default": (1, 2), "independent": (2, 2)}
"""Boulders and landmarks of each layout."""
_DIRECTIONS = ((0, 0), (0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1))


def particles(engine: Engine) -> dict[str, AgentHeads]:
    """An agent for each particle: those that choose a direction first, then those that give one.

    Each sees itself first.
    """
    choosers, size = engine.spec.num_choices, engine.obs.shape[1]
    # Position and velocity; the observation of positions alone has two numbers for each.
    points = sum(len(engine.state(0)[part]) for part in ("particles", "boulders", "landmarks"))
    block = 2 if size == 2 * points else 4
    agents = {}
    for index in range(choosers + engine.spec.num_ranges // 2):
        order, own = np.arange(size), slice(block * index, block * (index + 1))
        order[:block], order[own] = order[own].copy(), order[:block].copy()
        first = 2 * (index - choosers)
        chooses = index < choosers
        agents[f"particle_{index}"] = AgentHeads(
            slice(index, index + 1) if chooses else NO_HEADS,
            NO_HEADS if chooses else slice(first, first + 2),
            order,
        )
    return agents


ENV = NativeInfo(
    frames_per_second=15,
    agents=particles,
    draw=draw,
    reference=Reference(
        how="scripted, every particle pushes the nearest unfinished boulder",
        policy=push_together,
        mode="layout",
        measured={
            ("default", "discrete"): (1.2797, 0.0098, 16384, 37.171, 0, 16384),
            ("default", "hybrid"): (1.215, 0.0092, 16384, 37.258, 0.00041, 16384),
            ("default", "continuous"): (1.1665, 0.0088, 16384, 37.469, 1.1e-08, 16384),
            ("independent", "discrete"): (0.92062, 0.0071, 16384, 30.08, 0, 16384),
            ("independent", "hybrid"): (0.88134, 0.0067, 16384, 30.08, 0, 16384),
            ("independent", "continuous"): (0.83758, 0.0064, 16384, 30.08, 0, 16384),
        },
    ),
)
