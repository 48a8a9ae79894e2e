"""What every face of a compiled environment does alike: seeds, resets, scenarios, pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.checks import is_whole
from headwise.envs.native import NO_LIMIT
from headwise.envs.native.actions import ActionForm
from headwise.envs.native.drawing import Camera
from headwise.envs.native.engine import Autoreset, Engine
from headwise.envs.native.scenario import (
    Scenario,
    scenario_of,
    stage_scenario,
    unchanged_on_error,
)
from headwise.errors import EnvError
from headwise.registry import unknown

MAX_SEED = 2**64 - 1


class Stage:
    """An engine behind a face.

    Args:
        name: The environment, for example "HybridShoot".
        num_envs: How many slots.
        settings: Settings of the environment.
        max_episode_steps: The time limit; None takes the environment's own, -1 or 0 means none.
        autoreset: What happens when an episode ends.
        num_threads: Threads for large numbers of slots; None takes one for each core.
        render_mode: One of `render_modes`, or None for no pictures.
        render_modes: What the face can show.
    """

    def __init__(
        self,
        name: str,
        num_envs: int,
        settings: Mapping[str, Any],
        *,
        max_episode_steps: int | None,
        autoreset: Autoreset,
        num_threads: int | None,
        render_mode: str | None,
        render_modes: Sequence[str],
    ) -> None:
        if render_mode is not None and render_mode not in render_modes:
            raise unknown(f"render mode of {name}", render_mode, render_modes)
        self.engine = Engine(
            name,
            num_envs,
            settings,
            max_episode_steps=0 if max_episode_steps == NO_LIMIT else max_episode_steps,
            autoreset=autoreset,
            num_threads=num_threads,
        )
        self.camera = None
        if render_mode is not None:
            self.camera = Camera(self.engine, settings, autoreset, render_mode)
        self.started = False
        self.closed = False
        self._seeded = np.zeros(num_envs, dtype=np.bool_)

    def seeds(self, seed: object) -> list[int | None]:
        """One seed for each slot, as Gymnasium counts: from a number up, or a list of them."""
        n, name = self.engine.num_envs, self.engine.name
        if seed is None:
            return [None] * n
        if is_whole(seed):
            seeds: list[Any] = [int(seed) + i for i in range(n)]
        elif isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str):
            seeds = list(seed)
            if len(seeds) != n:
                raise EnvError(f"{name}: seeds must be one for each slot", got=seed, allowed=str(n))
        else:
            raise EnvError(f"{name}: a seed must be a whole number", got=seed)
        for slot, one in enumerate(seeds):
            if one is not None and not (is_whole(one) and 0 <= one <= MAX_SEED):
                raise EnvError(
                    f"{name}: impossible seed for slot {slot}",
                    got=one,
                    allowed="whole numbers from 0 to 2**64 - 1",
                )
        return [None if one is None else int(one) for one in seeds]

    def reset(
        self,
        seeds: list[int | None],
        scenario: Scenario,
        mask: NDArray[np.bool_] | None,
        np_random: Callable[[], np.random.Generator],
    ) -> None:
        """Starts an episode in every slot or in those of the mask; if refused, nothing changes.

        A slot without a new seed goes on with its stream of randomness; one that never had a seed
        gets it from the generator.
        """
        self._require_open("reset")
        resets = np.ones(self.engine.num_envs, dtype=np.bool_) if mask is None else mask
        if not self.started and not resets.all():
            raise EnvError(f"{self.engine.name}: the first reset must be of all slots", got=mask)
        news = resets & (~self._seeded | np.array([one is not None for one in seeds]))
        if scenario:
            with unchanged_on_error(self.engine):
                self._begin(seeds, news, resets, np_random)
                stage_scenario(self.engine, scenario, np.flatnonzero(resets).tolist())
        else:
            self._begin(seeds, news, resets, np_random)
        self._seeded |= news
        self.started = True
        if self.camera is not None:
            self.camera.forget(resets)

    def _begin(
        self,
        seeds: list[int | None],
        news: NDArray[np.bool_],
        resets: NDArray[np.bool_],
        np_random: Callable[[], np.random.Generator],
    ) -> None:
        if news.any():
            numbers = np.zeros(self.engine.num_envs, dtype=np.uint64)
            for slot in np.flatnonzero(news):
                seed = seeds[slot]
                drawn = np_random().integers(2**63) if seed is None else seed
                numbers[slot] = drawn
            self.engine.seed(numbers, np.zeros_like(numbers, dtype=np.uint32), news)
        # The very first reset must be of all slots, which the engine knows by the lack of a mask.
        self.engine.reset(None if resets.all() else resets)

    def step(self, form: ActionForm, action: Any) -> None:
        """One step of every slot; a refused action changes nothing."""
        self._require_open("step")
        self._require_start("step")
        form.write(action)
        if self.camera is None:
            self.engine.step()
            return
        self.camera.before_step()
        self.engine.step()
        self.camera.after_step()

    def scenario(self, options: object, also: Sequence[str] = ()) -> Scenario:
        """The parts of the state that reset options fix."""
        return scenario_of(self.engine, options, also)

    def set_state(self, state: Mapping[str, Any], slots: Sequence[int]) -> None:
        """Sets parts of the state of some slots; an impossible one is refused, nothing changes."""
        self._require_open("set_state")
        self._require_start("set_state")
        scenario = scenario_of(self.engine, {"state": state})
        with unchanged_on_error(self.engine):
            stage_scenario(self.engine, scenario, slots)
        if self.camera is not None:
            changed = np.zeros(self.engine.num_envs, dtype=np.bool_)
            changed[list(slots)] = True
            self.camera.forget(changed)

    def frame(self, slot: int) -> NDArray[np.uint8]:
        """The picture of a slot, (height, width, 3)."""
        assert self.camera is not None
        self._require_open("render")
        self._require_start("render")
        return self.camera.frame(slot)

    def close(self) -> None:
        """Closes the window, if there is one; closing twice is fine."""
        self.closed = True
        if self.camera is not None:
            self.camera.close()

    def _require_open(self, call: str) -> None:
        if self.closed:
            raise EnvError(f"{self.engine.name}: {call} after close", fix="Make a new environment.")

    def _require_start(self, call: str) -> None:
        if not self.started:
            raise EnvError(f"{self.engine.name}: {call} before reset", fix="Call reset() first.")
