"""Platform: the world from the side, the way of the last step, and how strong the action was."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.canvas import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    LIGHT_BLUE,
    LIGHT_STONE,
    LINE,
    MUTED,
    PAPER,
    RED,
    STONE,
    WIDTH,
    Canvas,
    Point,
    bin_value,
    frame,
    option_driven,
)
from headwise.envs.native.drawing import LastStep, Scene
from headwise.envs.native.info import NativeInfo, Reference
from headwise.envs.scripted import Floats, Policy, Settings, in_view
from headwise.spaces import ActionSpec, Choice, Range

KINDS = ("run", "hop", "leap")
STRONGEST = {"run": 30.0, "hop": 720.0, "leap": 430.0, "jump": 1.0}
_SPEED = {"run": 0.0, "hop": 35.0, "leap": 25.0}
_PLATFORMS = ((0.0, 250.0), (475.0, 750.0), (985.0, 1035.0))
_TOP, _END, _FRAME, _GRAVITY = 40.0, 1035.0, 0.05, 9.8
_BODY = (20.0, 30.0)
_ACROSS, _UP = 544.0 / 1055.0, 1.0
"""Pixels for a unit of the world; heights are stretched, or there would be little to see."""
_LEFT, _FLOOR = 22.0, 246.0


def draw(canvas: Canvas, scene: Scene) -> None:
    """Draws the scene."""
    state, last = scene.state, scene.last
    canvas.box((0, 52), (WIDTH, 206), "#eef4f8")
    for words, color, right in (("enemy", RED, 150.0), ("player", BLUE, 70.0)):
        canvas.circle((WIDTH - right, 68), 4.5, color)
        canvas.text((WIDTH - right + 10, 68), words, 11, INK)
    for left, right in _PLATFORMS:
        _platform(canvas, left, right)
    _goal(canvas)
    if last is not None:
        _way(canvas, scene, last)
        _body(canvas, float(last.before["x"]), float(last.before["y"]), LIGHT_BLUE, None)
    for x, speed in zip(state["enemy_x"], state["enemy_dx"], strict=True):
        _body(canvas, float(x), _TOP, RED, "!")
        px, py = _place(float(x) + 10, _TOP + 15)
        way = 1.0 if speed > 0 else -1.0
        canvas.arrow((px + 8 * way, py), (px + 20 * way, py), RED, 1.6)
    over = last is not None and last.terminated
    reached = float(state["x"]) >= _END
    color = GREEN if reached else MUTED if over else BLUE
    _body(canvas, float(state["x"]), float(state["y"]), color, None)
    if over and not reached:
        x, y = _place(float(state["x"]) + 10, float(state["y"]) + 15)
        canvas.cross((x, y), 9, RED, 2.4)
    canvas.box((0, 258), (WIDTH, 142), PAPER)
    canvas.line([(0, 258), (WIDTH, 258)], LINE)
    frame(
        canvas,
        scene,
        "Platform",
        "Reach the far end. A fall or an enemy ends it; progress is the reward.",
    )
    _progress(canvas, min(float(state["x"]) / _END, 1.0))
    _gauges(canvas, scene)


def chosen_kind(scene: Scene, last: LastStep) -> int:
    """The kind of move that the action takes: 0 run, 1 hop, 2 leap."""
    value = last.action["kind"]
    return int(value) if scene.num_options["kind"] else option_driven(value, 3, -1.0, 1.0)


def strengths(scene: Scene, last: LastStep) -> dict[str, float]:
    """The strength that the action gives each kind of move, in its own units."""
    found = {}
    for kind in KINDS:
        head = kind if kind in last.action else "jump"
        value, options = last.action[head], scene.num_options[head]
        value = bin_value(value, options, 0.0, STRONGEST[head]) if options else value
        found[kind] = value * STRONGEST[kind] if head == "jump" else value
    return found


def _way(canvas: Canvas, scene: Scene, last: LastStep) -> None:
    """The way of the last step: straight for a run, an arc for a jump (without its noise)."""
    x0, y0 = float(last.before["x"]), float(last.before["y"])
    x1, y1 = float(scene.state["x"]), float(scene.state["y"])
    speed = _SPEED[KINDS[chosen_kind(scene, last)]]
    frames = max(int(scene.state["frames"]), 1)

    def rise(share: float) -> float:
        seconds = share * frames * _FRAME
        return speed * seconds - 0.5 * _GRAVITY * seconds**2 if speed else 0.0

    noise = y1 - y0 - rise(1.0)  # spread over the way, so that it ends where the player is
    points = []
    for step in range(61):
        share = step / 60
        at = (x0 + 10 + share * (x1 - x0), y0 + 15 + rise(share) + share * noise)
        points.append(_place(*at))
    canvas.dashes(points, BLUE, 1.6)


def _platform(canvas: Canvas, left: float, right: float) -> None:
    x, y = _place(left, _TOP)
    width = (right - left + (20 if right == _END else 0)) * _ACROSS
    canvas.box((x, y), (width, _FLOOR - y + 12), LIGHT_STONE)
    canvas.box((x, y), (width, 4), STONE)


def _goal(canvas: Canvas) -> None:
    x, y = _place(_END + 10, _TOP)
    canvas.line([(x, y), (x, y - 60)], GREEN, 2.0)
    canvas.shape([(x, y - 61), (x - 22, y - 53), (x, y - 45)], GREEN)


def _body(canvas: Canvas, x: float, y: float, color: str, mark: str | None) -> None:
    px, py = _place(x, y + _BODY[1])
    width, height = _BODY[0] * _ACROSS, _BODY[1] * _UP
    canvas.box((px, py), (width, height), color, "#ffffff", 0.8, radius=4)
    if mark:
        canvas.text((px + width / 2, py + height / 2), mark, 14, PAPER, "mm", bold=True)


def _progress(canvas: Canvas, share: float) -> None:
    canvas.text((16, 280), "progress", 11, MUTED)
    canvas.box((78, 275), (440, 10), FAINT, radius=5)
    if share > 0.01:
        canvas.box((78, 275), (440 * share, 10), GREEN, radius=5)
    canvas.text((WIDTH - 16, 280), f"{100 * share:.1f} %", 12, INK, "rm")


def _gauges(canvas: Canvas, scene: Scene) -> None:
    last = scene.last
    if last is None:
        canvas.text((16, 312), "No move yet. A move is a run, a hop or a leap,", 12, MUTED)
        canvas.text((16, 330), "each with a strength of its own.", 12, MUTED)
        return
    chosen, given = chosen_kind(scene, last), strengths(scene, last)
    for row, kind in enumerate(KINDS):
        y = 314.0 + 28 * row
        active = row == chosen
        color = BLUE if active else LINE
        canvas.circle((22, y), 5, BLUE if active else None, color, 1.5)
        canvas.text((36, y), kind, 13, INK if active else MUTED, bold=active)
        canvas.box((78, y - 5), (440, 10), FAINT, radius=5)
        share = given[kind] / STRONGEST[kind]
        if share > 0.01:
            canvas.box((78, y - 5), (440 * share, 10), color, radius=5)
        words = f"{given[kind]:.0f}/{STRONGEST[kind]:.0f}"
        canvas.text((WIDTH - 16, y), words, 12, INK if active else MUTED, "rm")


def _place(x: float, y: float) -> Point:
    return _LEFT + x * _ACROSS, _FLOOR + 8 - y * _UP


_MARGIN = 6.0
"""How far from an edge is far enough."""


def hop_over_everything(spec: ActionSpec, settings: Settings) -> Policy:
    """Hops over an enemy ahead, runs up to the edge otherwise, and hops over the gap."""
    right = np.array([250.0, 750.0, 1035.0])[:, None]
    far_side = np.array([455.0, 965.0, np.inf])[:, None]
    options = spec.cardinalities[spec.names.index("run")]
    strengths = np.linspace(0.0, 30.0, options or 61)
    native = ActionSpec.of(
        kind=Choice(3), run=Range(0.0, 30.0), hop=Range(0.0, 720.0), leap=Range(0.0, 430.0)
    )

    def act(obs: Floats) -> NDArray[np.float32]:
        x, vx = obs[:, :1] * 1055.0 - 20.0, obs[:, 1:2] * 100.0
        enemy_x = obs[:, 2:3] * 1035.0
        platform = np.searchsorted([0.3, 0.7], obs[:, 7])
        edge, goal = right[platform], far_side[platform]

        def crosses(x: Floats, vx: Floats) -> Any:
            # A hop adds 30 to the speed, up to 70, and lasts 3.8 speeds with the air's resistance.
            return x + 3.8 * np.minimum(70.0, vx + 30.0) >= goal + 2.0 * _MARGIN

        # Where each strength of a run leads; it must leave room to stop, or a hop that crosses.
        end, speed = x, vx
        for _ in range(20):
            speed = np.minimum(70.0, speed + strengths)
            end, speed = end + 0.05 * speed, 0.99 * speed
        safe = (end <= edge - _MARGIN) & (
            crosses(end, speed) | (end + 0.92 * speed <= edge - _MARGIN)
        )
        run = np.where(safe, strengths, 0.0).max(axis=1)
        last = platform == 2
        hops = ~last & ((enemy_x > x) | crosses(x, vx))[:, 0]
        intent = np.stack(
            [hops * 1.0, np.where(last, 30.0, run), np.full_like(run, 720.0), np.zeros_like(run)],
            -1,
        )
        return in_view(intent, native, spec)

    return act


ENV = NativeInfo(
    frames_per_second=3,
    draw=draw,
    reference=Reference(
        how="scripted, hops over enemies and gaps; 1 is the most there is",
        policy=hop_over_everything,
        measured={
            ("", "discrete"): (0.14723, 0.00082, 16384, 0.99983, 9.6e-05, 16384),
            ("", "hybrid"): (0.15264, 0.00082, 16384, 0.99978, 0.00011, 16384),
            ("", "continuous"): (0.15264, 0.00082, 16384, 0.99978, 0.00011, 16384),
        },
    ),
)
