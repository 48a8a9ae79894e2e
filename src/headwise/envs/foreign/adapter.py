"""Any Gymnasium vector environment, one Step at a time.

Vector environments differ in when they reset a slot whose episode has ended. Here is where the
three modes become one thing: what to act on now, and the true successors that are something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray

from headwise.envs.autoreset import autoreset_mode
from headwise.envs.foreign import diagnose
from headwise.envs.foreign.codec import EnvCodec
from headwise.envs.foreign.vector import AsyncEnvs, SyncEnvs, Where
from headwise.envs.masks import MASK, MASK_METHOD, Legal
from headwise.envs.types import Final, Leaves, Step
from headwise.errors import ConfigError, EnvError, SpaceError
from headwise.spaces.action import as_array

_NONE = np.empty(0, dtype=np.intp)


class Adapter:
    """Steps a vector environment and says what happened.

    Args:
        vector: The vector environment.
        codec: What understands its observations and masks.
        mode: When it resets a slot whose episode has ended.
        num_members: How many members share it.
        where: What messages call a slot.
        reward_weights: How much each part of a reward counts, where it has parts.
    """

    def __init__(
        self,
        vector: VectorEnv[Any, Any, Any],
        codec: EnvCodec,
        mode: AutoresetMode,
        num_members: int,
        where: Where,
        reward_weights: NDArray[np.float64] | None = None,
    ) -> None:
        self.vector = vector
        self.num_envs = vector.num_envs
        self.is_own = isinstance(vector, SyncEnvs | AsyncEnvs)
        """Whether it steps environments of which each can tell of itself."""
        self.resets_later = mode is AutoresetMode.NEXT_STEP
        """Whether a step of its own resets a slot."""
        self.waits = np.zeros(self.num_envs, dtype=np.bool_)
        """Which slots have come to an end and will only be reset by the next step."""
        self._everywhere = np.ones(self.num_envs, dtype=np.bool_)
        self._codec, self._mode, self._where = codec, mode, where
        self._num_members, self._weights = num_members, reward_weights
        self._method = (
            codec.reads_masks and not self.is_own and not codec.shows_mask
            and _has_mask_method(vector)
        )  # fmt: skip
        self._shows_mask = codec.reads_masks and codec.shows_mask
        self._buffers: Leaves | None = None
        self.in_place = False
        """Whether observations are gathered where they are needed."""

    def gather_in(self, rows: NDArray[np.float32]) -> None:
        """Lets observations be gathered in these rows (N, O), if they lie there as they come."""
        array = self._codec.observations.as_it_comes(rows)
        if array is not None and isinstance(self.vector, SyncEnvs):
            self.in_place = self.vector.hold(array)
            self._buffers = None

    def reset(self, seeds: Sequence[int] | None) -> tuple[Leaves, Legal | None]:
        """Starts an episode in every slot: the observations, and the masks if there are any."""
        obs, infos = self._seeded(seeds)
        self.waits[...] = False
        return self._leaves(obs), self._masks(obs, infos)

    def step(self, action: Any) -> Step:
        """One step of every slot, by a batch of actions in Gymnasium's form."""
        vector = self.vector
        obs, reward, terminated, truncated, infos = vector.step(action)
        reward = self._reward(np.asarray(reward))
        if not self.is_own:
            terminated = diagnose.flags(self._where, "terminated", terminated, self.num_envs)
            truncated = diagnose.flags(self._where, "truncated", truncated, self.num_envs)
        leaves, legal = self._leaves(obs), self._masks(obs, infos)
        if self.resets_later:
            return self._after_the_step_before(leaves, reward, terminated, truncated, legal)
        ended = _NONE
        if infos or not self.is_own:  # ours tell of every end there
            (ended,) = (terminated | truncated).nonzero()
        if not len(ended):
            return Step(leaves, reward, terminated, truncated, self._everywhere, None, legal)
        truncated = truncated & ~terminated
        if self._mode is AutoresetMode.SAME_STEP:
            final = self._final(ended, infos)
            return Step(leaves, reward, terminated, truncated, self._everywhere, final, legal)
        step = Step(leaves, reward, terminated, truncated, self._everywhere, None, legal)
        return self._reset_now(step, ended)

    def close(self) -> None:
        """Closes the vector environment."""
        self.vector.close()

    # --- three ways to reset --------------------------------------------------------------------

    def _after_the_step_before(
        self,
        leaves: Leaves,
        reward: NDArray[np.float64],
        terminated: Legal,
        truncated: Legal,
        legal: Legal | None,
    ) -> Step:
        """Where an episode was over before this step, the step was only a reset."""
        valid = ~self.waits
        terminated = terminated & valid
        truncated = truncated & valid & ~terminated
        self.waits = terminated | truncated
        return Step(leaves, np.where(valid, reward, 0.0), terminated, truncated, valid, None, legal)

    def _final(self, ended: NDArray[np.intp], infos: dict[str, Any]) -> Final:
        """What came back is of the new episodes; how the old ones ended is in the infos."""
        final_obs = infos.get("final_obs")
        if final_obs is None:
            raise EnvError(
                f"{type(self.vector).__name__}: it resets in the same step and keeps the last "
                "observation of the episode to itself",
                got=sorted(infos),
                allowed='infos["final_obs"]',
            )
        if not isinstance(final_obs, np.ndarray) or final_obs.dtype != object:
            final_obs = list(iterate(self.vector.observation_space, final_obs))
        rows = [final_obs[slot] for slot in ended]
        try:
            leaves = self._codec.observations.stacked(rows)
        except (SpaceError, ValueError):
            diagnose.observations(self._codec, rows, lambda row: self._where(int(ended[row])))
            raise
        return Final(ended, leaves, self._final_masks(ended, final_obs, infos))

    def _reset_now(self, step: Step, ended: NDArray[np.intp]) -> Step:
        """It resets nothing by itself."""
        legal = None if step.legal is None else step.legal[ended]
        final = Final(ended, {path: x[ended] for path, x in step.obs.items()}, legal)
        over = np.zeros(self.num_envs, dtype=np.bool_)
        over[ended] = True
        obs, infos = self.vector.reset(options={"reset_mask": over})
        first, told = self._leaves(obs), self._masks(obs, infos)
        leaves = {path: x.copy() for path, x in step.obs.items()}
        for path, x in leaves.items():
            x[ended] = first[path][ended]
        if told is None and step.legal is None:
            return step._replace(obs=leaves, final=final)
        masks = self._all_legal() if step.legal is None else step.legal
        masks[ended] = self._codec.all_legal if told is None else told[ended]
        return step._replace(obs=leaves, final=final, legal=masks)

    # --- observations and rewards ---------------------------------------------------------------

    def _leaves(self, obs: Any) -> Leaves:
        if not self.is_own:
            return self._codec.observations.leaves_of(obs, self.num_envs)
        if self._buffers is None:  # they never change
            self._buffers = self._codec.observations.leaves_of(obs, self.num_envs)
        return self._buffers

    def _reward(self, reward: NDArray[Any]) -> NDArray[np.float64]:
        """The rewards as numbers, finite or not."""
        weights, size, parts = self._weights, (self.num_envs,), reward.shape[1:]
        if weights is None and reward.dtype == np.float64 and reward.shape == size:
            return reward
        name = self._where(0) if self.is_own else type(self.vector).__name__
        is_number = reward.dtype.kind in "biuf"
        if is_number and weights is not None:
            if reward.shape != (*size, *weights.shape):
                raise EnvError(
                    f"{name}: reward_weights do not fit the reward",
                    got=f"a reward of shape {parts}",
                    allowed=str(weights.shape),
                )
            weighed: NDArray[np.float64] = reward.astype(np.float64) @ weights
            return weighed
        if is_number and reward.shape == size:
            return reward.astype(np.float64)
        if is_number and reward.ndim == 2 and parts[0] > 1:
            raise EnvError(
                f"{name}: the reward has {parts[0]} parts, and a learner needs one number",
                got=f"a reward of shape {parts}",
                fix=f"Say how much each part counts: reward_weights={(1.0,) * parts[0]} (for an "
                "Agent in env_settings).",
            )
        if isinstance(self.vector, SyncEnvs | AsyncEnvs):
            given = enumerate(self.vector.rewards)
            return np.array([diagnose.number(self._where(slot), reward) for slot, reward in given])
        wrong, got = ("shape", reward.shape) if is_number else ("type", f"dtype {reward.dtype}")
        raise EnvError(
            f"{name}: reward {'has' if is_number else 'is of'} the wrong {wrong}",
            got=got,
            allowed=str(size) if is_number else "numbers",
        )

    # --- masks ----------------------------------------------------------------------------------

    def _all_legal(self) -> Legal:
        return np.broadcast_to(
            self._codec.all_legal, (self.num_envs, *self._codec.all_legal.shape)
        ).copy()

    def _masks(self, obs: Any, infos: dict[str, Any]) -> Legal | None:
        """The masks of what is shown now; None where none are given."""
        if not (infos or self._shows_mask or self._method) or not self._codec.reads_masks:
            return None
        present = self._everywhere
        masks: Any
        if self._shows_mask:
            masks = obs[MASK]
            if not isinstance(masks, np.ndarray):
                space: Any = self.vector.observation_space
                masks = list(iterate(space[MASK], masks))
        elif MASK in infos:
            masks, present = _one_by_one(infos[MASK], infos.get(f"_{MASK}", present))
        elif self._method:
            masks = _asked(self.vector)
        else:
            return None
        return self._read(masks, present)

    def _final_masks(
        self, ended: NDArray[np.intp], final_obs: Any, infos: dict[str, Any]
    ) -> Legal | None:
        """The masks of last observations; where none is given, every option counts as legal."""
        if not self._codec.reads_masks:
            return None
        masks: Any
        if self._codec.shows_mask:
            masks, present = [None] * self.num_envs, np.zeros(self.num_envs, dtype=np.bool_)
            for slot in ended:
                masks[slot], present[slot] = final_obs[slot][MASK], True
        elif MASK in infos.get("final_info", ()):
            told = infos["final_info"]
            masks, present = _one_by_one(told[MASK], told.get(f"_{MASK}", self._everywhere))
        else:
            return None
        legal: Legal = self._read(masks, present)[ended]
        return legal

    def _read(self, masks: Any, present: Legal) -> Legal:
        legal = np.empty((self.num_envs, *self._codec.all_legal.shape), dtype=np.bool_)
        try:
            self._codec.legal_batch(masks, present, legal)
        except EnvError:
            self._codec.require_options()
            diagnose.masks(self._codec, masks, present, self._where)
            raise
        return legal

    # --- seeds ----------------------------------------------------------------------------------

    def _seeded(self, seeds: Sequence[int] | None) -> tuple[Any, dict[str, Any]]:
        if seeds is None:
            return self.vector.reset()
        refused = (TypeError, ValueError, gymnasium.error.Error)
        try:
            return self.vector.reset(seed=list(seeds))  # type: ignore[arg-type]
        except refused as error:
            if hasattr(self.vector.unwrapped, "env_fns"):  # Gymnasium's own take a seed for each
                raise
            if self._num_members > 1:
                raise EnvError(
                    f"{type(self.vector).__name__}: it takes one seed for all its environments, so "
                    "members would not have randomness of their own",
                    got=f"{self._num_members} members",
                    fix="Hand over a callable that makes a vector environment for one member.",
                ) from error
            return self.vector.reset(seed=int(seeds[0]))


def mode_of(name: str, vector: VectorEnv[Any, Any, Any], autoreset: str | None) -> AutoresetMode:
    """When a vector environment resets, by what it says or was said of it."""
    told = (vector.metadata or {}).get("autoreset_mode")
    mode = told if autoreset is None else autoreset
    try:
        return autoreset_mode(mode)
    except ConfigError:
        raise EnvError(
            f"{name} does not say when it resets an environment whose episode has ended",
            got=mode,
            allowed='metadata["autoreset_mode"], or autoreset="next_step", "same_step" or '
            '"disabled"',
            fix="A wrong guess would put transitions into memory that never happened.",
        ) from None


def checked_weights(weights: Any) -> NDArray[np.float64] | None:
    """How much each part of a reward counts."""
    if weights is None:
        return None
    array = as_array(weights)
    if array.dtype.kind in "iuf" and array.ndim == 1 and len(array) and np.isfinite(array).all():
        return array.astype(np.float64)
    raise ConfigError(
        "reward_weights say how much each part of a reward counts",
        got=weights,
        allowed="a finite number for each part, as (1.0, 0.1)",
    )


def _one_by_one(masks: Any, present: Legal) -> tuple[Any, Legal]:
    """Masks in the form of vector infos, where a dict of each becomes a dict of arrays."""
    if not isinstance(masks, dict):
        return masks, present

    def picked(part: Any, slot: int) -> Any:
        if not isinstance(part, dict):
            return part[slot]
        keys = [key for key in part if f"_{key}" in part]
        return {key: picked(part[key], slot) for key in keys if part[f"_{key}"][slot]}

    return [picked(masks, slot) if present[slot] else None for slot in range(len(present))], present


def _has_mask_method(vector: VectorEnv[Any, Any, Any]) -> bool:
    inner: Any = vector.unwrapped
    if hasattr(inner, MASK_METHOD):
        return True
    if hasattr(inner, "envs"):
        return bool(inner.envs[0].has_wrapper_attr(MASK_METHOD))
    if hasattr(inner, "env_fns"):
        # Asking a worker for what is not there would end it, so a fresh environment is asked.
        env = inner.env_fns[0]()
        found = bool(env.has_wrapper_attr(MASK_METHOD))
        env.close()
        return found
    return False


def _asked(vector: VectorEnv[Any, Any, Any]) -> Any:
    inner: Any = vector.unwrapped
    if hasattr(inner, MASK_METHOD):
        return inner.action_masks()
    return inner.call(MASK_METHOD)
