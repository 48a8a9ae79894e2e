"""One Gymnasium vector environment and the rows of a step batch that it fills.

Vector environments differ in when they reset a slot whose episode has ended. Here is where the
three modes become one thing: the true successor of every action, and what to act on now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray

from headwise.envs.foreign_codec import EnvCodec
from headwise.envs.masks import MASK, MASK_METHOD, Legal
from headwise.envs.types import StepBatch
from headwise.errors import EnvError

Floats = NDArray[np.float32]


class Reader(Protocol):
    """What a port needs to know of observations and masks."""

    mask_in_obs: bool
    reads_masks: bool
    all_legal: Legal

    def flatten(self, obs: Any) -> Floats:
        """One observation as a vector (O,)."""

    def flatten_batch(self, obs: Any, out: Floats | None = None) -> Floats:
        """A batch of observations as an array (N, O)."""

    def legal_batch(self, masks: Any, present: Legal, out: Legal) -> None:
        """The masks of N slots into `out` (N, H, K)."""


class FlatReader:
    """Reads a vector environment of slots, which have done all the work themselves."""

    mask_in_obs = False

    def __init__(self, codec: EnvCodec) -> None:
        self.reads_masks = codec.reads_masks
        self.all_legal = codec.all_legal

    def flatten(self, obs: Any) -> Floats:
        """One observation as a vector (O,)."""
        flat: Floats = obs
        return flat

    def flatten_batch(self, obs: Any, out: Floats | None = None) -> Floats:
        """A batch of observations as an array (N, O)."""
        if out is None:
            return np.array(obs)
        out[...] = obs
        return out

    def legal_batch(self, masks: Any, present: Legal, out: Legal) -> None:
        """The masks of N slots into `out` (N, H, K)."""
        out[...] = masks | ~present[:, None, None]
        out &= self.all_legal


class Port:
    """Steps a vector environment and writes down what happened.

    Args:
        vector: The vector environment.
        reader: What understands its observations and masks.
        mode: When it resets a slot whose episode has ended.
        num_members: How many members share it.
    """

    def __init__(
        self,
        vector: VectorEnv[Any, Any, Any],
        reader: Reader,
        mode: AutoresetMode,
        num_members: int,
    ) -> None:
        self.vector = vector
        self.num_envs = vector.num_envs
        self._num_members = num_members
        self._reader = reader
        self._mode = mode
        self.has_slots = isinstance(reader, FlatReader)
        """Whether its environments are slots of ours, which have read their masks themselves."""
        ask = reader.reads_masks and not self.has_slots
        self._method = ask and _has_mask_method(vector)
        self.waits = np.zeros(self.num_envs, dtype=np.bool_)
        """Which slots have come to an end and will only be reset by the next step."""
        self.reward: NDArray[Any] = np.zeros(self.num_envs)
        """The rewards of the last step as they were given, before they are float32."""

    def reset(self, seeds: Sequence[int] | None, obs: Floats) -> Legal | None:
        """Starts an episode in every slot, writes the observations, and returns the masks."""
        raw, infos = self._seeded(seeds)
        self._reader.flatten_batch(raw, obs)
        self.waits[...] = False
        if not self._tells_masks(raw, infos):
            return None
        legal = np.empty((self.num_envs, *self._reader.all_legal.shape), dtype=np.bool_)
        self._read_masks(raw, infos, legal)
        return legal

    def step(self, action: Any, rows: StepBatch) -> None:
        """One step of every slot, written into `rows`; masks only where `rows` has room for them.

        Raises an EnvError if there are masks that were not there after the reset.
        """
        obs, reward, terminated, truncated, infos = self.vector.step(action)
        for name, values in (
            ("reward", reward),
            ("terminated", terminated),
            ("truncated", truncated),
        ):
            values = np.asarray(values)
            if values.dtype.kind not in "biuf":
                raise EnvError(
                    f"{type(self.vector).__name__}: {name} is of the wrong type",
                    got=f"dtype {values.dtype}",
                    allowed="numbers",
                )
            if values.shape != (self.num_envs,):
                raise EnvError(
                    f"{type(self.vector).__name__}: {name} has the wrong shape",
                    got=values.shape,
                    allowed=f"({self.num_envs},)",
                )
            with np.errstate(over="ignore"):  # what is too large for float32 is refused as infinite
                getattr(rows, name)[...] = values
        self.reward = np.asarray(reward)
        if rows.legal is None and self._tells_masks(obs, infos):
            raise EnvError(
                f"{type(self.vector).__name__}: step() gave a mask and reset() gave none",
                allowed="masks always or never",
                fix="Give it in the info of reset() too.",
            )
        np.logical_and(rows.truncated, ~rows.terminated, out=rows.truncated)
        self._reader.flatten_batch(obs, rows.next_obs)
        if rows.next_legal is not None:
            self._read_masks(obs, infos, rows.next_legal)
        if self._mode is AutoresetMode.NEXT_STEP:
            self._after_the_step_before(rows)
        elif self._mode is AutoresetMode.SAME_STEP:
            self._reset_in_this_step(rows, infos)
        else:
            self._reset_now(rows)

    def close(self) -> None:
        """Closes the vector environment."""
        self.vector.close()

    # --- three ways to reset --------------------------------------------------------------------

    def _after_the_step_before(self, rows: StepBatch) -> None:
        """Where an episode was over before this step, the step was only a reset."""
        np.logical_not(self.waits, out=rows.valid)
        rows.reward[self.waits] = 0.0
        rows.terminated[self.waits] = False
        rows.truncated[self.waits] = False
        _copy_next(rows)
        np.logical_or(rows.terminated, rows.truncated, out=self.waits)

    def _reset_in_this_step(self, rows: StepBatch, infos: dict[str, Any]) -> None:
        """What came back is the new episode's; the old one's end is in the infos."""
        rows.valid[...] = True
        _copy_next(rows)
        (ended,) = np.nonzero(rows.terminated | rows.truncated)
        if not len(ended):
            return
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
        for slot in ended:
            rows.next_obs[slot] = self._reader.flatten(final_obs[slot])
        if rows.next_legal is not None:
            self._read_final_masks(rows.next_legal, ended, final_obs, infos)

    def _reset_now(self, rows: StepBatch) -> None:
        """It resets nothing by itself."""
        rows.valid[...] = True
        _copy_next(rows)
        ended = rows.terminated | rows.truncated
        if not ended.any():
            return
        obs, infos = self.vector.reset(options={"reset_mask": ended})
        rows.obs[ended] = self._reader.flatten_batch(obs)[ended]
        if rows.legal is not None:
            legal = np.empty_like(rows.legal)
            self._read_masks(obs, infos, legal)
            rows.legal[ended] = legal[ended]

    # --- masks ----------------------------------------------------------------------------------

    def _tells_masks(self, obs: Any, infos: dict[str, Any]) -> bool:
        if not self._reader.reads_masks:
            return False
        return self._reader.mask_in_obs or MASK in infos or self._method

    def _read_masks(self, obs: Any, infos: dict[str, Any], out: Legal) -> None:
        present = np.ones(self.num_envs, dtype=np.bool_)
        masks: Any
        if self._reader.mask_in_obs:
            masks = obs[MASK]
            if not isinstance(masks, np.ndarray):
                space: Any = self.vector.observation_space
                masks = list(iterate(space[MASK], masks))
        elif MASK in infos:
            masks, present = _one_by_one(infos[MASK], infos.get(f"_{MASK}", present))
        elif self._method:
            masks = _asked(self.vector)
        else:  # a step whose infos say nothing: no slot has a mask
            out[...] = self._reader.all_legal
            return
        self._reader.legal_batch(masks, present, out)

    def _read_final_masks(
        self, out: Legal, ended: Iterable[int], final_obs: Any, infos: dict[str, Any]
    ) -> None:
        """The masks of last observations; where nobody tells, every option counts as legal."""
        masks: list[Any] = [None] * self.num_envs
        present = np.zeros(self.num_envs, dtype=np.bool_)
        if self._reader.mask_in_obs:
            for slot in ended:
                masks[slot], present[slot] = final_obs[slot][MASK], True
        elif MASK in infos.get("final_info", {}):
            final_info = infos["final_info"]
            everywhere = np.ones(self.num_envs, dtype=np.bool_)
            masks, present = _one_by_one(final_info[MASK], final_info.get(f"_{MASK}", everywhere))
        legal = np.empty_like(out)
        self._reader.legal_batch(masks, present, legal)
        for slot in ended:
            out[slot] = legal[slot]

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


def _copy_next(rows: StepBatch) -> None:
    np.copyto(rows.obs, rows.next_obs)
    if rows.legal is not None and rows.next_legal is not None:
        np.copyto(rows.legal, rows.next_legal)


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
