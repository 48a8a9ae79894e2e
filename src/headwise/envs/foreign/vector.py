"""Gymnasium's vector environments as they step users' environments here.

Both reset in the same step, share one buffer for observations, and pass on nothing of an info but
the mask. Rewards are kept as they were given, so that what is wrong can be told by slot.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector.async_vector_env import AsyncState
from numpy.typing import NDArray

from headwise.envs.foreign import diagnose
from headwise.envs.foreign.codec import EnvCodec
from headwise.envs.foreign.state import State
from headwise.envs.masks import MASK, MASK_METHOD

Where: TypeAlias = Callable[[int], str]
"""What messages call a slot."""
Stepped: TypeAlias = tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]
_NOTHING = object()
_shape_of = attrgetter("shape")


class SyncEnvs(SyncVectorEnv):
    """Environments one after another, in this process.

    Args:
        envs: The environments.
        codec: What knows their spaces.
        where: What messages call a slot.
    """

    def __init__(self, envs: Sequence[gym.Env[Any, Any]], codec: EnvCodec, where: Where) -> None:
        making = [lambda env=env: env for env in envs]
        super().__init__(making, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
        self.states = [State(env) for env in self.envs]
        self.rewards: list[Any] = []
        """The rewards of the last step as environments gave them."""
        self._codec, self._where = codec, where
        self._asks = [_asks(env, codec) for env in self.envs]
        self._stepped = list(enumerate(self.envs))
        self._no_ends = _flags(self.num_envs, {})
        for flags in self._no_ends:
            flags.flags.writeable = False
        self._places = list(_places(self.single_observation_space, self._observations, ()))

    def reset(
        self,
        *,
        seed: Any = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode in every environment."""
        if isinstance(seed, int):
            seed = range(seed, seed + self.num_envs)
        seeds = [None] * self.num_envs if seed is None else seed
        masks: dict[int, Any] = {}
        for slot, (env, one) in enumerate(zip(self.envs, seeds, strict=True)):
            result = env.reset(seed=one, options=options)
            self._env_obs[slot], told = self._begun(slot, env, result)
            masks |= told
        self._gather()
        return self._observations, _infos(self.num_envs, masks, {})

    def step(self, actions: Any) -> Stepped:
        """One step of every environment; those whose episode ends begin the next."""
        rewards: list[Any] = [0.0] * self.num_envs
        over: dict[int, tuple[bool, bool]] = {}
        masks: dict[int, Any] = {}
        final: dict[int, tuple[Any, Any]] = {}
        rows, asks = self._env_obs, self._asks
        singles = self._codec.actions.unstack(actions, self.num_envs)
        for slot, env in self._stepped:
            result = env.step(singles[slot])
            try:
                obs, reward, terminated, truncated, info = result
            except (TypeError, ValueError):
                raise diagnose.returned(self._where(slot), 5, result, "step") from None
            if info or asks[slot]:
                masks |= _told(slot, env, info, asks[slot])
            if terminated is not False or truncated is not False:
                if type(terminated) is not bool or type(truncated) is not bool:
                    terminated, truncated = diagnose.ends(self._where, slot, terminated, truncated)
                if terminated or truncated:
                    over[slot] = terminated, truncated
                    final[slot] = obs, masks.pop(slot, _NOTHING)
                    obs, told = self._begun(slot, env, env.reset())
                    masks |= told
            rows[slot] = obs
            rewards[slot] = reward
        self.rewards = rewards
        self._gather()
        infos = _infos(self.num_envs, masks, final) if masks or final else {}
        ends = _flags(self.num_envs, over) if over else self._no_ends
        return self._observations, _array(rewards), *ends, infos

    def hold(self, array: NDArray[Any]) -> bool:
        """Gathers observations there from now on, (N, ...); whether they are no more than that."""
        if not isinstance(self.single_observation_space, spaces.Box):
            return False
        self._observations = array
        self._places = list(_places(self.single_observation_space, array, ()))
        return True

    def rest(self, slots: NDArray[np.bool_]) -> None:
        """Lets those environments (N,) alone from now on: they stay as they are, and earn 0."""
        self._stepped = [(i, env) for i, env in enumerate(self.envs) if not slots[i]]

    def _begun(self, slot: int, env: gym.Env[Any, Any], result: Any) -> tuple[Any, dict[int, Any]]:
        """The observation of a reset and its mask."""
        if not isinstance(result, tuple) or len(result) != 2:
            raise diagnose.returned(self._where(slot), 2, result, "reset")
        return result[0], _told(slot, env, result[1], self._asks[slot])

    def _gather(self) -> None:
        """The observations of all environments into the buffers, as `concatenate` does it."""
        try:
            for keys, shape, buffer, joined in self._places:
                column: list[Any] = self._env_obs
                for key in keys:
                    column = [obs[key] for obs in column]
                if not shape:
                    np.copyto(buffer, _scalars(column), casting="same_kind")
                elif set(map(_shape_of, column)) == {shape}:
                    np.concatenate(column, out=joined, casting="same_kind")
                else:
                    np.stack(column, out=buffer)
        except Exception as error:
            diagnose.observations(self._codec, self._env_obs, self._where)
            self._gather_anything(error)

    def _gather_anything(self, error: Exception) -> None:
        """The same where nothing is wrong but the type: whole numbers for a Box of bytes."""
        try:
            for keys, _, buffer, _ in self._places:
                for slot, shown in enumerate(self._env_obs):
                    obs: Any = shown
                    for key in keys:
                        obs = obs[key]
                    buffer[slot] = obs
        except Exception:
            raise error from None


class AsyncEnvs(AsyncVectorEnv):
    """Environments side by side, each in a process.

    Args:
        making: What makes each.
        codec: What knows their spaces.
        where: What messages call a slot.
    """

    def __init__(
        self, making: Sequence[Callable[[], gym.Env[Any, Any]]], codec: EnvCodec, where: Where
    ) -> None:
        parent = os.getpid()

        def guarded(slot: int) -> Callable[[], gym.Env[Any, Any]]:
            return lambda: Guard(making[slot](), codec, where(slot), parent)

        self.rewards: list[Any] = []
        """The rewards of the last step as environments gave them."""
        self._codec = codec
        super().__init__(
            [guarded(slot) for slot in range(len(making))], copy=False,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )  # fmt: skip

    def step_async(self, actions: Any) -> None:
        """Sends every environment its action."""
        self._assert_is_running()
        rows = self._codec.actions.unstack(actions, self.num_envs)
        for pipe, action in zip(self.parent_pipes, rows, strict=True):
            pipe.send(("step", action))
        self._state = AsyncState.WAITING_STEP

    def step_wait(self, timeout: float | None = None) -> Stepped:
        """Waits for what came of it."""
        if not self._poll_pipe_envs(timeout):
            raise TimeoutError(f"a step took longer than {timeout} seconds")
        results = self._received()
        masks, final, over = {}, {}, {}
        for slot, (_, _, terminated, truncated, info) in enumerate(results):
            if terminated or truncated:  # truths, by the guard of the environment
                over[slot] = terminated, truncated
                final[slot] = info["final_obs"], info["final_info"].get(MASK, _NOTHING)
            if MASK in info:
                masks[slot] = info[MASK]
        self.rewards = [result[1] for result in results]
        infos = _infos(self.num_envs, masks, final) if masks or final else {}
        return self.observations, _array(self.rewards), *_flags(self.num_envs, over), infos

    def reset_wait(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """Waits for the first observations."""
        if not self._poll_pipe_envs(timeout):
            raise TimeoutError(f"a reset took longer than {timeout} seconds")
        told = enumerate(info for _, info in self._received())
        masks = {slot: info[MASK] for slot, info in told if MASK in info}
        return self.observations, _infos(self.num_envs, masks, {})

    def _received(self) -> list[Any]:
        answers = [pipe.recv() for pipe in self.parent_pipes]
        self._raise_if_errors([good for _, good in answers])
        self._state = AsyncState.DEFAULT
        return [answer for answer, _ in answers]

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """Ends every process, also where some have ended by themselves."""
        whole = all(pipe is not None and not pipe.closed for pipe in self.parent_pipes)
        if whole and not terminate and self._state == AsyncState.DEFAULT:
            with suppress(OSError, EOFError):
                super().close_extras(timeout)
                return
        self._state = AsyncState.DEFAULT
        super().close_extras(terminate=True)


class Guard(gym.Wrapper[Any, Any, Any, Any]):
    """An environment in a process of its own, which sends nothing but what is needed.

    Args:
        env: The environment.
        codec: What knows its spaces.
        where: What messages call it.
        parent: The process that trains. It alone handles Ctrl-C, saves and closes this one.
    """

    def __init__(self, env: gym.Env[Any, Any], codec: EnvCodec, where: str, parent: int) -> None:
        super().__init__(env)
        if os.getpid() != parent:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._codec, self._where, self._asks = codec, where, _asks(env, codec)
        self._kept = State(env)
        self._leaves = [
            (keys, leaf.shape, dtype)
            for (_, keys, dtype), leaf in zip(
                codec.observations.places, codec.observations.leaves, strict=True
            )
        ]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode."""
        result = self.env.reset(seed=seed, options=options)
        if not isinstance(result, tuple) or len(result) != 2:
            raise diagnose.returned(self._where, 2, result, "reset")
        return self._checked(result[0]), self._info(result[1])

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step."""
        result: Any = self.env.step(action)
        if not isinstance(result, tuple) or len(result) != 5:
            raise diagnose.returned(self._where, 5, result, "step")
        obs, reward, terminated, truncated, info = result
        if terminated is not False or truncated is not False:
            terminated, truncated = diagnose.ends(lambda _: self._where, 0, terminated, truncated)
        told = self._info(info) if info or self._asks else {}
        return self._checked(obs), reward, terminated, truncated, told

    def told(self, what: str) -> Any:
        """What the environment tells of its state."""
        return getattr(self._kept, what)

    @property
    def saved(self) -> bytes | None:
        """The state of the environment."""
        return self._kept.saved

    @saved.setter
    def saved(self, saved: bytes) -> None:
        self._kept.saved = saved

    def _info(self, info: Any) -> dict[str, Any]:
        told = _told(0, self.env, info, self._asks)
        return {MASK: told[0]} if told else {}

    def _checked(self, obs: Any) -> Any:
        for keys, shape, dtype in self._leaves:
            value = obs
            try:
                for key in keys:
                    value = value[key]
                good = value.shape == shape and value.dtype == dtype
            except Exception:  # diagnosed below
                good = False
            if not good:
                diagnose.observations(self._codec, [obs], lambda _: self._where)
        return obs


def _asks(env: gym.Env[Any, Any], codec: EnvCodec) -> bool | None:
    """Whether its method is asked for masks; None where masks are not read here."""
    if not codec.reads_masks or codec.shows_mask:
        return None
    return env.has_wrapper_attr(MASK_METHOD)


def _told(slot: int, env: gym.Env[Any, Any], info: Any, asks: bool | None) -> dict[int, Any]:
    """The mask beside the observation of a slot, if there is one: in the info, or by method."""
    if asks is None:
        return {}
    if isinstance(info, Mapping) and MASK in info:
        return {slot: info[MASK]}
    return {slot: env.get_wrapper_attr(MASK_METHOD)()} if asks else {}


def _infos(
    number: int, masks: Mapping[int, Any], final: Mapping[int, tuple[Any, Any]]
) -> dict[str, Any]:
    """What was told, in the form of a vector environment's infos."""
    infos = _masks_info(number, masks)
    if final:
        infos["final_obs"] = last = np.empty(number, dtype=object)
        for slot, (obs, _) in final.items():
            last[slot] = obs
        told = {slot: mask for slot, (_, mask) in final.items() if mask is not _NOTHING}
        infos["final_info"] = _masks_info(number, told)
    return infos


def _masks_info(number: int, masks: Mapping[int, Any]) -> dict[str, Any]:
    if not masks:
        return {}
    present = np.zeros(number, dtype=np.bool_)
    present[list(masks)] = True
    return {MASK: [masks.get(slot) for slot in range(number)], f"_{MASK}": present}


def _array(given: list[Any]) -> NDArray[Any]:
    """What was given as an array; one of objects where that is none."""
    try:
        return np.array(given)
    except Exception:  # a ragged list
        return np.empty(0, dtype=object)


def _flags(
    number: int, over: Mapping[int, tuple[bool, bool]]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which slots were terminated, and which truncated."""
    flags = np.zeros((2, number), dtype=np.bool_)
    for slot, ends in over.items():
        flags[:, slot] = ends
    return flags[0], flags[1]


def _scalars(column: list[Any]) -> NDArray[Any]:
    array = np.array(column)
    if array.ndim != 1:
        raise ValueError("these are no lone numbers")
    return array


def _places(
    space: spaces.Space[Any], buffer: Any, keys: tuple[Any, ...]
) -> Iterator[tuple[tuple[Any, ...], tuple[int, ...], Any, Any]]:
    """For every array of an observation: where it is, its shape, and its buffer, twice."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces
        named = parts.items() if isinstance(parts, Mapping) else enumerate(parts)
        for key, part in named:
            yield from _places(part, buffer[key], (*keys, key))
    else:
        shape = tuple(space.shape or ())
        joined = buffer.reshape(-1, *shape[1:]) if shape else buffer
        yield keys, shape, buffer, joined
