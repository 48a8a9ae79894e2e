"""Pictures of the compiled environments: what to show of a slot, as an array or in a window.

Pillow draws and pygame shows; both are the optional extra `render`, loaded when first needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.engine import Autoreset, Engine, settings_of
from headwise.envs.native.info import info_of
from headwise.errors import EnvError

State = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class LastStep:
    """What the step before the picture did."""

    before: State
    """The state in which the action was chosen."""
    action: dict[str, float]
    """The action by head, as the engine read it: options by number, numbers in their units."""
    reward: float
    terminated: bool
    truncated: bool


@dataclass(frozen=True)
class Scene:
    """All that a picture of one slot shows."""

    name: str
    settings: Mapping[str, Any]
    num_options: dict[str, int]
    """The number of options of each head; 0 for a head that is a number."""
    state: State
    last: LastStep | None
    """None at the start of an episode."""
    episode_return: float
    limit: int
    """The time limit; 0 means none."""


class Camera:
    """Follows an engine and remembers of each slot what its picture needs.

    Args:
        engine: The engine.
        settings: The settings it was made with.
        autoreset: What it does when an episode ends.
        render_mode: "rgb_array", or "human" for a window.
    """

    def __init__(
        self, engine: Engine, settings: Mapping[str, Any], autoreset: Autoreset, render_mode: str
    ) -> None:
        require("PIL", "pillow", f"{engine.name}: pictures need Pillow")
        self._window: Window | None = None
        if render_mode == "human":
            rate = info_of(engine.name).frames_per_second
            self._window = Window(f"Headwise: {engine.name}", rate)
        self._engine = engine
        self._settings = {name: row[0] for name, row in settings_of(engine.name).items()}
        self._settings.update(settings)
        self._at_once = autoreset is Autoreset.SAME_STEP
        self._before: list[State] = []
        self._last: list[LastStep | None] = [None] * engine.num_envs

    def before_step(self) -> None:
        """Remembers in which state the action was chosen."""
        self._before = [self._engine.state(slot) for slot in range(self._engine.num_envs)]

    def after_step(self) -> None:
        """Remembers what came of it."""
        engine = self._engine
        for slot, before in enumerate(self._before):
            terminated, truncated = bool(engine.terminated[slot]), bool(engine.truncated[slot])
            only_reset = engine.episode_length[slot] == 0
            if only_reset or (self._at_once and (terminated or truncated)):
                self._last[slot] = None  # the picture is of a new episode
                continue
            values = [*engine.choices[slot].tolist(), *engine.ranges[slot].tolist()]
            action = dict(zip(engine.spec.names, values, strict=True))
            reward = float(engine.reward[slot])
            self._last[slot] = LastStep(before, action, reward, terminated, truncated)

    def forget(self, slots: NDArray[np.bool_]) -> None:
        """Slots of the mask stand at a new start."""
        for slot in np.flatnonzero(slots):
            self._last[slot] = None

    def frame(self, slot: int) -> NDArray[np.uint8]:
        """The picture of a slot, (400, 600, 3)."""
        engine, last = self._engine, self._last[slot]
        scene = Scene(
            name=engine.name,
            settings=self._settings,
            num_options=dict(zip(engine.spec.names, engine.spec.cardinalities, strict=True)),
            state=engine.state(slot),
            last=last,
            episode_return=0.0 if last is None else float(engine.episode_return[slot]),
            limit=engine.max_episode_steps,
        )
        return picture(scene)

    def show(self, frame: NDArray[np.uint8]) -> None:
        """Shows a picture in the window."""
        assert self._window is not None
        self._window.show(frame)

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._window is not None:
            self._window.close()


def picture(scene: Scene) -> NDArray[np.uint8]:
    """A scene as an array of colors, (400, 600, 3)."""
    from headwise.envs.native.canvas import Canvas

    canvas = Canvas()
    info_of(scene.name).draw(canvas, scene)
    return canvas.pixels()


class Window:
    """A window that shows one picture after the other, no faster than asked for."""

    def __init__(self, title: str, frames_per_second: int) -> None:
        self._pygame = require("pygame", "pygame-ce", "a window needs pygame")
        self._title, self._rate = title, frames_per_second
        self._screen: Any = None
        self._clock: Any = None

    def show(self, frame: NDArray[np.uint8]) -> None:
        """Shows a picture; the window opens with the first."""
        pygame = self._pygame
        height, width, _ = frame.shape
        if self._screen is None:
            pygame.display.init()
            pygame.display.set_caption(self._title)
            self._screen = pygame.display.set_mode((width, height))
            self._clock = pygame.time.Clock()
        surface = pygame.image.frombuffer(frame.tobytes(), (width, height), "RGB")
        self._screen.blit(surface, (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self._rate)

    def close(self) -> None:
        """Closes the window."""
        if self._screen is not None:
            self._pygame.display.quit()
            self._screen = None


def require(module: str, package: str, what: str) -> Any:
    """An optional module, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise EnvError(
            f"{what}, which is not installed",
            fix=f"Install it: pip install 'headwise[render]' (or {package} alone).",
        ) from error
