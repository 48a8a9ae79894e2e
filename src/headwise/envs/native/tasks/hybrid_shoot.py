"""HybridShoot: the unit square with its targets, who is selected, and where the shot went."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.canvas import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    LIGHT_ORANGE,
    LINE,
    MUTED,
    ORANGE,
    PAPER,
    RED,
    Canvas,
    Point,
    bin_value,
    frame,
    legend,
    option_driven,
)
from headwise.envs.native.drawing import LastStep, Scene
from headwise.envs.native.engine import Engine
from headwise.envs.native.info import EVERY_HEAD, NO_HEADS, AgentHeads, NativeInfo, Reference
from headwise.envs.scripted import Floats, Policy, Settings, in_view
from headwise.spaces import ActionSpec, Choice, Range

_LEFT, _TOP, _SIDE = 30.0, 68.0, 312.0
_PANEL = 372.0


def draw(canvas: Canvas, scene: Scene) -> None:
    """Draws the scene."""
    independent = scene.settings["mode"] == "independent"
    task = (
        "Shoot every target. Any may be hit; those alive and not selected cost something."
        if independent
        else "Shoot every target. Only the selected one can be hit."
    )
    frame(canvas, scene, f"HybridShoot ({scene.settings['mode']})", task)
    canvas.box((_LEFT, _TOP), (_SIDE, _SIDE), "#ffffff", LINE)
    for tenth in range(1, 10):
        shift = _SIDE * tenth / 10
        canvas.line([(_LEFT + shift, _TOP), (_LEFT + shift, _TOP + _SIDE)], FAINT, 0.5)
        canvas.line([(_LEFT, _TOP + shift), (_LEFT + _SIDE, _TOP + shift)], FAINT, 0.5)
    for tick in (0.0, 0.5, 1.0):
        canvas.text((_LEFT + tick * _SIDE, _TOP + _SIDE + 9), f"{tick:g}", 9, MUTED, "mm")
        canvas.text((_LEFT - 6, _TOP + (1 - tick) * _SIDE), f"{tick:g}", 9, MUTED, "rm")
    last = scene.last
    if "aim" in scene.num_options:  # one number aims: show the way it goes
        canvas.line([_place(*point) for point in _curve(_width(scene))], "#cfd8e0", 0.8)
    chosen = None if last is None else selected(scene, last)
    _targets(canvas, scene, chosen)
    if last is not None and chosen is not None:
        _shot(canvas, scene, last)
        _report(canvas, scene, last, chosen)
    else:
        canvas.text((_PANEL, 84), "No shot yet.", 12, MUTED)
    legend(
        canvas,
        (_PANEL, 306),
        [
            (ORANGE, f"alive, with hit radius {scene.settings['hit_radius']:g}"),
            (LINE, "dead"),
            (BLUE, "selected"),
            (RED, "a shot that missed"),
            (GREEN, "a shot that hit"),
        ],
    )


def selected(scene: Scene, last: LastStep) -> int:
    """The target that the action selects."""
    value, targets = last.action["select"], len(scene.state["targets"])
    return int(value) if scene.num_options["select"] else option_driven(value, targets, 0.0, 1.0)


def shot_point(scene: Scene, last: LastStep) -> Point:
    """Where the action aims."""

    def number(head: str) -> float:
        options = scene.num_options[head]
        value = last.action[head]
        return bin_value(value, options, 0.0, 1.0) if options else value

    if "aim" not in scene.num_options:
        return number("aim_x"), number("aim_y")
    points = _curve(_width(scene))
    return points[min(max(int(number("aim") * len(points) + 0.5), 0), len(points) - 1)]


def _targets(canvas: Canvas, scene: Scene, chosen: int | None) -> None:
    radius = float(scene.settings["hit_radius"]) * _SIDE
    alive = scene.state["alive"] > 0
    order = sorted(range(len(alive)), key=lambda t: bool(alive[t]))  # the living on top
    for target in order:
        at = _place(*scene.state["targets"][target])
        if alive[target]:
            canvas.circle(at, radius, LIGHT_ORANGE, ORANGE, 1.2)
        else:
            canvas.ring(at, radius, LINE, 1.0)
    for target in order:
        at = _place(*scene.state["targets"][target])
        if alive[target]:
            canvas.circle(at, 10, ORANGE)
            canvas.text(at, str(target), 12, PAPER, "mm", bold=True)
        else:
            canvas.circle(at, 10, "#ffffff", LINE, 1.5)
            canvas.text(at, str(target), 12, LINE, "mm")
            canvas.cross(at, 7, MUTED, 1.2)
        if target == chosen:
            canvas.circle(at, 14.5, None, BLUE, 2.4)


def _shot(canvas: Canvas, scene: Scene, last: LastStep) -> None:
    x, y = _place(*shot_point(scene, last))
    color = GREEN if _killed(scene, last) is not None else RED
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        canvas.line([(x + 3 * dx, y + 3 * dy), (x + 11 * dx, y + 11 * dy)], color, 2.2)
    canvas.circle((x, y), 7, None, color, 1.6)


def _report(canvas: Canvas, scene: Scene, last: LastStep, chosen: int) -> None:
    x, y = shot_point(scene, last)
    killed = _killed(scene, last)
    was_dead = last.before["alive"][chosen] == 0
    if killed is not None:
        words, color = f"Hit target {killed}", GREEN
    elif was_dead and scene.settings["mode"] == "dependent":
        words, color = f"Target {chosen} was dead already", RED
    else:
        words, color = "Missed", RED
    canvas.text((_PANEL, 84), "Last action", 11, MUTED)
    canvas.text((_PANEL, 106), f"selected target {chosen}", 14, BLUE)
    aim = f"aimed at ({x:.2f}, {y:.2f})"
    canvas.text((_PANEL, 128), aim, 14, INK)
    canvas.text((_PANEL, 152), words, 14, color, bold=True)
    left = int((scene.state["alive"] > 0).sum())
    total = len(scene.state["alive"])
    canvas.text((_PANEL, 192), "Targets left", 11, MUTED)
    canvas.text((_PANEL, 214), f"{left} of {total}", 14, INK)


def _killed(scene: Scene, last: LastStep) -> int | None:
    died = (last.before["alive"] > 0) & (scene.state["alive"] == 0)
    return int(died.argmax()) if died.any() else None


def _place(x: float, y: float) -> Point:
    return _LEFT + float(x) * _SIDE, _TOP + (1.0 - float(y)) * _SIDE


def _width(scene: Scene) -> int:
    return int(scene.settings["hilbert_width"])


@cache
def _curve(width: int) -> list[Point]:
    """The points of the Hilbert curve over the unit square, from (0, 0) to (1, 0)."""
    points = [(0, 0)]
    side = 1
    while side < width:
        # Four copies: turned over, twice as it is, and turned over the other way.
        points = [
            *((y, x) for x, y in points),
            *((x, y + side) for x, y in points),
            *((x + side, y + side) for x, y in points),
            *((2 * side - 1 - y, side - 1 - x) for x, y in points),
        ]
        side *= 2
    return [(x / (width - 1), y / (width - 1)) for x, y in points]


def shoot_the_first(spec: ActionSpec, settings: Settings) -> Policy:
    """Selects the first target that is alive and shoots at it."""
    scalar = "aim" in spec.names

    def act(obs: Floats) -> NDArray[np.float32]:
        x, y, alive = np.moveaxis(obs.reshape(len(obs), -1, 3), -1, 0)
        select = np.argmax(alive, axis=1)
        rows = np.arange(len(obs))
        target = np.stack([x[rows, select], y[rows, select]], -1)
        heads = {"select": Choice(alive.shape[1])}
        if scalar:
            aim = _number_that_aims_at(target, spec)
            native = ActionSpec.of(heads, aim=Range(0.0, 1.0))
            return in_view(np.stack([select, aim], -1), native, spec)
        native = ActionSpec.of(heads, aim_x=Range(0.0, 1.0), aim_y=Range(0.0, 1.0))
        return in_view(np.column_stack([select, target]), native, spec)

    return act


def hilbert_points(numbers: Floats, width: int = 16) -> Floats:
    """The points of the unit square (n, 2) that numbers in [0, 1] aim at along the curve."""
    d = np.clip(np.floor(numbers * width * width + 0.5), 0, width * width - 1).astype(int)
    x, y = np.zeros_like(d), np.zeros_like(d)
    side = 1
    while side < width:
        right = (d // 2) & 1
        up = (d ^ right) & 1
        turned = up == 0
        mirrored = turned & (right == 1)
        x, y = np.where(mirrored, side - 1 - x, x), np.where(mirrored, side - 1 - y, y)
        x, y = np.where(turned, y, x) + side * right, np.where(turned, x, y) + side * up
        d, side = d // 4, side * 2
    return np.stack([x, y], -1) / (width - 1)


def _number_that_aims_at(target: Floats, spec: ActionSpec) -> Floats:
    """Of the numbers that a view can say, the one whose point is nearest."""
    options = spec.cardinalities[spec.names.index("aim")]
    numbers = np.linspace(0.0, 1.0, options) if options else np.arange(256) / 256
    miss = ((target[:, None] - hilbert_points(numbers)) ** 2).sum(-1)
    nearest: Floats = numbers[np.argmin(miss, axis=1)]
    return nearest


def selector_and_shooter(engine: Engine) -> dict[str, AgentHeads]:
    """The first head selects, the others aim."""
    chooses = engine.spec.num_choices > 0
    one, rest = slice(0, 1), slice(1, None)
    return {
        "selector": AgentHeads(one, NO_HEADS) if chooses else AgentHeads(NO_HEADS, one),
        "shooter": AgentHeads(rest, EVERY_HEAD) if chooses else AgentHeads(NO_HEADS, rest),
    }


ENV = NativeInfo(
    frames_per_second=2,
    agents=selector_and_shooter,
    draw=draw,
    reference=Reference(
        how="scripted, shoots the first target alive; the most there is is 34.7 in "
        "dependent and 33.2 in independent mode",
        policy=shoot_the_first,
        mode="mode",
        measured={
            ("dependent", "discrete"): (-0.19844, 0.027, 16384, 34.7, 0, 16384),
            ("dependent", "hybrid"): (-0.04195, 0.029, 16384, 34.7, 0, 16384),
            ("dependent", "continuous"): (-0.04195, 0.029, 16384, 34.7, 0, 16384),
            ("independent", "discrete"): (-1.5441, 0.047, 16384, 33.108, 0.013, 16384),
            ("independent", "hybrid"): (-1.5333, 0.047, 16384, 33.2, 0, 16384),
            ("independent", "continuous"): (-1.5333, 0.047, 16384, 33.2, 0, 16384),
        },
    ),
)
