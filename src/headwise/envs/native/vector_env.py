"""Our compiled environments as `gymnasium.vector.VectorEnv`: many slots, one call per step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from headwise.checks import is_whole
from headwise.envs.autoreset import autoreset_mode as mode_by_name
from headwise.envs.native.actions import action_form as form_of_action
from headwise.envs.native.engine import Autoreset
from headwise.envs.native.info import info_of
from headwise.envs.native.stage import Stage
from headwise.errors import EnvError
from headwise.spaces import ActionSpec

Observations = NDArray[np.float32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
RENDER_MODES = ("rgb_array",)


class NativeVectorEnv(VectorEnv[Observations, Any, Any]):
    """Many slots of one compiled environment, as `gymnasium.make_vec` returns them.

    It behaves as Gymnasium's SyncVectorEnv over as many NativeEnvs would, to the bit. On top, the
    step that ends an episode brings its return and length, `infos["episode"] = {"r", "l"}` with
    masks, also where SAME_STEP puts it, in `infos["final_info"]`.

    Args:
        name: The environment, for example "HybridShoot".
        num_envs: How many slots.
        autoreset_mode: "next_step", "same_step", "disabled", or Gymnasium's AutoresetMode.
        num_threads: Threads for large numbers of slots; None takes one for each core.
        max_episode_steps: The time limit; None takes the environment's own, -1 means none.
        render_mode: "rgb_array" or None.
        copy: Whether results are copies. If not, they are overwritten by the next step.
        episode_stats: Whether to report `infos["episode"]`; Gymnasium's RecordEpisodeStatistics
            wants to do so itself.
        action_form: "heads", or "oneof" for Platform as a parameterized action.
        **settings: Settings of the environment, `settings_of(name)`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium's own convention)
        "render_modes": list(RENDER_MODES),
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        name: str,
        num_envs: int = 1,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        num_threads: int | None = None,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        copy: bool = True,
        episode_stats: bool = True,
        action_form: str = "heads",
        **settings: Any,
    ) -> None:
        self.closed = True  # until there is something to close
        mode = mode_by_name(autoreset_mode)
        self._same_step = mode is AutoresetMode.SAME_STEP
        self._stage = Stage(
            name,
            num_envs,
            settings,
            max_episode_steps=max_episode_steps,
            autoreset=Autoreset[mode.name],
            num_threads=num_threads,
            render_mode=render_mode,
            render_modes=RENDER_MODES,
        )
        self.engine = engine = self._stage.engine
        self._form = form_of_action(engine, action_form, batched=True)
        self._copy, self._episode_stats = copy, episode_stats
        self._rewards = np.zeros(num_envs, dtype=np.float64)
        self.num_envs = num_envs
        self.single_action_space = self._form.space
        self.single_observation_space = gym.spaces.Box(engine.obs_low, engine.obs_high)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.render_mode = render_mode
        self.metadata = {
            **self.metadata,
            "render_fps": info_of(name).frames_per_second,
            "autoreset_mode": mode,
        }
        self.closed = False

    @property
    def action_spec(self) -> ActionSpec:
        """The heads of the action, in the order of the engine: options first, then numbers."""
        return self._form.spec

    @property
    def max_episode_steps(self) -> int:
        """Steps after which an episode is truncated; 0 means never."""
        return self.engine.max_episode_steps

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Starts an episode in every slot, or in those of `options["reset_mask"]`.

        Args:
            seed: Slot i starts its randomness at `seed + i`, or at `seed[i]`; where there is no
                seed, the stream goes on.
            options: Parts of the state to start from, for all slots alike or with a row for each.
        """
        seeds = self._stage.seeds(seed)
        scenario = self._stage.scenario(options, ["reset_mask"])
        self._stage.reset(seeds, scenario, self._reset_mask(options), lambda: self.np_random)
        if is_whole(seed):
            super().reset(seed=int(seed))
        return self._returned(self.engine.obs), {}

    def step(self, actions: Any) -> tuple[Observations, Floats, Flags, Flags, dict[str, Any]]:
        """One step of every slot: observations, rewards, terminated, truncated, infos."""
        self._stage.step(self._form, actions)
        engine = self.engine
        infos: dict[str, Any] = {}
        ended = engine.terminated | engine.truncated
        if ended.any():
            infos = self._infos_of_the_ended(ended)
        np.copyto(self._rewards, engine.reward)
        return (
            self._returned(engine.obs),
            self._returned(self._rewards),
            self._returned(engine.terminated),
            self._returned(engine.truncated),
            infos,
        )

    def get_state(self, slot: int | None = None) -> dict[str, NDArray[np.float64]]:
        """The state of one slot, or of all with a leading axis, part by part."""
        if slot is not None:
            return self.engine.state(self._slot(slot))
        states = [self.engine.state(slot) for slot in range(self.num_envs)]
        return {name: np.stack([state[name] for state in states]) for name in states[0]}

    def set_state(self, state: Mapping[str, Any], slot: int | None = None) -> Observations:
        """Sets parts of the state of one slot or of all, and returns what is observed now."""
        slots = range(self.num_envs) if slot is None else [self._slot(slot)]
        self._stage.set_state(state, slots)
        return self._returned(self.engine.obs)

    def snapshot(self) -> bytes:
        """The whole state of every slot, randomness included."""
        return self.engine.snapshot()

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """One picture for each slot."""
        if self.render_mode is None:
            gym.logger.warn(
                f"{self.engine.name}: render() without a render mode shows nothing. "
                'Make the environment with render_mode="rgb_array".'
            )
            return None
        return tuple(self._stage.frame(slot) for slot in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Lets go of what `close()` has to; further calls are refused."""
        self._stage.close()

    def _returned(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.copy() if self._copy else array

    def _infos_of_the_ended(self, ended: Flags) -> dict[str, Any]:
        """The infos of a step with an end, laid out as `VectorEnv._add_info` would."""
        infos: dict[str, Any] = {}
        if self._same_step:
            final_obs = np.full(self.num_envs, None, dtype=object)
            (slots,) = np.nonzero(ended)
            for slot, obs in zip(slots.tolist(), self.engine.next_obs[slots], strict=True):
                final_obs[slot] = obs
            final_info = self._episodes(ended)
            infos = {
                "final_obs": final_obs,
                "_final_obs": ended.copy(),
                "final_info": final_info,
                "_final_info": ended.copy(),
            }
        return {**infos, **self._episodes(ended)}

    def _episodes(self, ended: Flags) -> dict[str, Any]:
        if not self._episode_stats:
            return {}
        engine = self.engine
        episode = {
            "r": np.where(ended, engine.episode_return, 0.0).astype(np.float64),
            "_r": ended.copy(),
            "l": np.where(ended, engine.episode_length, 0).astype(np.int64),
            "_l": ended.copy(),
        }
        return {"episode": episode, "_episode": ended.copy()}

    def _reset_mask(self, options: Mapping[str, Any] | None) -> Flags | None:
        if options is None or "reset_mask" not in options:
            return None
        mask = options["reset_mask"]
        fits = isinstance(mask, np.ndarray) and mask.dtype == np.bool_
        if not fits or mask.shape != (self.num_envs,) or not mask.any():
            raise EnvError(
                f"{self.engine.name}: impossible reset mask",
                got=mask,
                allowed=f"a boolean array of shape ({self.num_envs},) with a True in it",
            )
        return np.ascontiguousarray(mask)

    def _slot(self, slot: int) -> int:
        if not 0 <= slot < self.num_envs:
            raise EnvError(
                f"{self.engine.name}: there is no such slot",
                got=slot,
                allowed=f"0 to {self.num_envs - 1}",
            )
        return slot
