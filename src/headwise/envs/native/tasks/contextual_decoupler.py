"""ContextualDecoupler: which head counts, what it should choose, and what it chose last."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.canvas import (
    FAINT,
    GREEN,
    INK,
    LIGHT_ORANGE,
    LINE,
    MUTED,
    ORANGE,
    PANEL,
    PAPER,
    RED,
    Canvas,
    frame,
    sign_color,
)
from headwise.envs.native.drawing import LastStep, Scene, State
from headwise.envs.native.engine import Engine
from headwise.envs.native.info import AgentHeads, NativeInfo, Reference
from headwise.envs.scripted import Floats, Policy, Settings
from headwise.spaces import ActionSpec

_MOST_CELLS = 10
_CARDS = (16.0, 308.0)
_CARD = (276.0, 292.0)
_TOP = 66.0


def draw(canvas: Canvas, scene: Scene) -> None:
    """Draws the scene: the question answered last, and the one that is open."""
    frame(
        canvas,
        scene,
        "ContextualDecoupler",
        "The active head earns by naming its target; the other should rest at 0.",
    )
    last = scene.last
    options = int(scene.settings["num_options"])
    _card(canvas, _CARDS[0], "Last step", None if last is None else last.before, last, options)
    _card(canvas, _CARDS[1], "Now", scene.state, None, options)
    for x, color, words in (
        (24, ORANGE, "target of the active head"),
        (196, GREEN, "right choice"),
        (302, RED, "wrong choice"),
        (414, MUTED, "target that does not count"),
    ):
        canvas.circle((x, 380), 4.5, color)
        canvas.text((x + 11, 380), words, 11, INK)


def _card(
    canvas: Canvas,
    left: float,
    title: str,
    state: State | None,
    last: LastStep | None,
    options: int,
) -> None:
    canvas.box((left, _TOP), _CARD, PANEL, radius=8)
    canvas.text((left + 14, _TOP + 20), title, 13, INK, bold=True)
    if state is None:
        canvas.text((left + 14, _TOP + 48), "No step yet.", 12, MUTED)
        return
    active = int(state["context"])
    canvas.text((left + _CARD[0] - 14, _TOP + 20), f"context {active}", 12, ORANGE, "rm", bold=True)
    for head in (0, 1):
        chosen = None if last is None else int(last.action[f"head_{head}"])
        _row(canvas, left, _TOP + 44 + 108 * head, head, state, chosen, options)
    if last is not None:
        words = f"reward {last.reward:+.1f}"
        canvas.text((left + 14, _TOP + 274), words, 13, sign_color(last.reward), bold=True)


def _row(
    canvas: Canvas,
    left: float,
    top: float,
    head: int,
    state: State,
    chosen: int | None,
    options: int,
) -> None:
    active = int(state["context"]) == head
    target = int(state["targets"][head])
    right = chosen == (target if active else 0)
    fill = "#ffffff" if active else PANEL
    outline = ORANGE if active else LINE
    canvas.box((left + 10, top), (_CARD[0] - 20, 98), fill, outline, 1.6 if active else 1.0, 6)
    canvas.text((left + 22, top + 17), f"head {head}", 12, INK if active else MUTED, bold=True)
    duty = f"active: choose {target}" if active else "idle: rest at 0"
    canvas.text((left + 76, top + 17), duty, 12, ORANGE if active else MUTED)
    if chosen is not None:
        words = f"chose {chosen}"
        canvas.text((left + _CARD[0] - 22, top + 17), words, 12, GREEN if right else RED, "rm")
    if options > _MOST_CELLS:
        canvas.text((left + 22, top + 62), f"one of {options} options", 12, MUTED)
        return
    size = min(36.0, (_CARD[0] - 44) / options - 4)
    for option in range(options):
        x = left + 22 + option * (size + 4)
        y = top + 62 - size / 2
        is_target, is_chosen = option == target, option == chosen
        face = LIGHT_ORANGE if is_target and active else PAPER if active else FAINT
        edge = ORANGE if is_target and active else MUTED if is_target else LINE
        color = INK if active else MUTED
        if is_chosen:
            face = edge = GREEN if right else RED
            color = PAPER
        canvas.box((x, y), (size, size), face, edge, 2.0 if is_target else 1.0, 5)
        canvas.text((x + size / 2, y + size / 2), str(option), 12, color, "mm", bold=is_chosen)


def obey_the_context(spec: ActionSpec, settings: Settings) -> Policy:
    """The active head takes its target, the idle one rests at 0."""

    def act(obs: Floats) -> NDArray[np.float32]:
        context, first, second = obs.T
        return np.stack([first * (context == 0), second * (context == 1)], -1).astype(np.float32)

    return act


def one_for_each_head(engine: Engine) -> dict[str, AgentHeads]:
    """An agent for each head."""
    return {name: AgentHeads(slice(head, head + 1)) for head, name in enumerate(engine.spec.names)}


ENV = NativeInfo(
    frames_per_second=2,
    agents=one_for_each_head,
    draw=draw,
    reference=Reference(
        how="scripted, obeys the context; 100 is the most there is",
        policy=obey_the_context,
        measured={
            ("", "discrete"): (-67.964, 0.063, 16384, 100, 0, 16384),
        },
    ),
)
