"""Our compiled environments as `gymnasium.Env`: one slot of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from headwise.envs.native import limit_given_to_make
from headwise.envs.native.actions import ActionForm
from headwise.envs.native.actions import action_form as form_of_action
from headwise.envs.native.engine import Autoreset
from headwise.envs.native.info import info_of
from headwise.envs.native.stage import Stage
from headwise.errors import EnvError
from headwise.spaces import ActionSpec

Observation = NDArray[np.float32]
RENDER_MODES = ("human", "rgb_array")


class NativeEnv(gym.Env[Observation, Any]):
    """One compiled environment, as `gymnasium.make("headwise/HybridShoot-v0")` returns it.

    Reset options fix parts of the start: any part of `get_state()` at the top level, or a state
    under "state". A refused action, option or state leaves the environment as it was.

    Args:
        name: The environment, for example "HybridShoot".
        render_mode: "human", "rgb_array" or None.
        max_episode_steps: The time limit; None takes the environment's own, -1 means none.
        action_form: "heads", or "oneof" for Platform as a parameterized action.
        **settings: Settings of the environment, `settings_of(name)`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium's own convention)
        "render_modes": list(RENDER_MODES),
        "render_fps": 10,
    }

    def __init__(
        self,
        name: str,
        *,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        action_form: str = "heads",
        **settings: Any,
    ) -> None:
        if max_episode_steps is None:
            max_episode_steps = limit_given_to_make()
        self._stage = Stage(
            name,
            1,
            settings,
            max_episode_steps=max_episode_steps,
            autoreset=Autoreset.DISABLED,
            num_threads=1,
            render_mode=render_mode,
            render_modes=RENDER_MODES,
        )
        self.engine = engine = self._stage.engine
        self._form = form_of_action(engine, action_form, batched=False)
        self._over = False
        self.action_space = self._form.space
        self.observation_space = gym.spaces.Box(engine.obs_low, engine.obs_high)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": info_of(name).frames_per_second}

    @property
    def action_spec(self) -> ActionSpec:
        """The heads of the action, in the order of the engine: options first, then numbers."""
        return self._form.spec

    @property
    def max_episode_steps(self) -> int:
        """Steps after which an episode is truncated; 0 means never."""
        return self.engine.max_episode_steps

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: Where randomness starts; without one, the stream goes on.
            options: Parts of the state to start from.
        """
        seeds = self._stage.seeds(seed)
        scenario = self._stage.scenario(options)
        self._stage.reset(seeds, scenario, None, lambda: self.np_random)
        super().reset(seed=seeds[0])
        self._over = False
        self._show()
        return self._observed(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One step: observation, reward, terminated, truncated (never both), info."""
        return self.step_with(self._form, action)

    def step_with(
        self, form: ActionForm, action: Any
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One step with an action in some form, for faces that give it in parts."""
        if self._over and not self._stage.closed:
            raise EnvError(f"{self.engine.name}: step after the end", fix="Call reset() first.")
        self._stage.step(form, action)
        engine = self.engine
        terminated, truncated = bool(engine.terminated[0]), bool(engine.truncated[0])
        self._over = terminated or truncated
        self._show()
        return self._observed(), float(engine.reward[0]), terminated, truncated, {}

    def get_state(self) -> dict[str, NDArray[np.float64]]:
        """The state, part by part; `set_state` and the reset options take it back."""
        return self.engine.state(0)

    def set_state(self, state: Mapping[str, Any]) -> Observation:
        """Sets parts of the state and returns what is observed now."""
        self._stage.set_state(state, [0])
        self._over = False
        return self._observed()

    def snapshot(self) -> bytes:
        """The whole state, randomness included."""
        return self.engine.snapshot()

    def render(self) -> NDArray[np.uint8] | None:
        """The picture of the state: an array for "rgb_array", a window for "human"."""
        if self.render_mode is None:
            gym.logger.warn(
                f"{self.engine.name}: render() without a render mode shows nothing. "
                'Make the environment with render_mode="rgb_array" or "human".'
            )
            return None
        frame = self._stage.frame(0)
        if self.render_mode == "rgb_array":
            return frame
        assert self._stage.camera is not None
        self._stage.camera.show(frame)
        return None

    def close(self) -> None:
        """Closes the window, if there is one; closing twice is fine."""
        self._stage.close()

    def _observed(self) -> Observation:
        obs: Observation = self.engine.obs[0]
        return obs.copy()

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()
