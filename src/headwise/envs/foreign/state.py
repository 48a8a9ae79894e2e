"""How a user's environment is resumed: by the layer in it that can save its whole state."""

from __future__ import annotations

import inspect
import json
from typing import Any

import gymnasium as gym
from gymnasium import wrappers

from headwise.envs.foreign.made import Made, in_common, made_as
from headwise.envs.foreign.parallel import Team

FORGETFUL = frozenset(
    {
        wrappers.ClipAction, wrappers.ClipReward, wrappers.DiscretizeAction,
        wrappers.DiscretizeObservation, wrappers.DtypeObservation, wrappers.FilterObservation,
        wrappers.FlattenObservation, wrappers.GrayscaleObservation, wrappers.HumanRendering,
        wrappers.OrderEnforcing, wrappers.PassiveEnvChecker, wrappers.RecordEpisodeStatistics,
        wrappers.RecordVideo, wrappers.RenderCollection, wrappers.RescaleAction,
        wrappers.RescaleObservation, wrappers.ReshapeObservation, wrappers.ResizeObservation,
        wrappers.TimeLimit,
    }
)  # fmt: skip
"""Wrappers that remember nothing which a later observation or reward depends on; the clock of a
TimeLimit is kept for it. A subclass may remember something, so it is not meant."""


class State:
    """The state of one environment, if it has hooks that tell it.

    Args:
        env: The environment, freshly made.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self._env = env
        keeper = self._keeper()
        self.made: Made = {} if keeper is None else made_as(keeper)
        """How the environment was made, as far as its state will be kept."""

    @property
    def has_hooks(self) -> bool:
        """Whether the environment can write down its state, by the look of it."""
        return self._keeper() is not None

    @property
    def saved(self) -> bytes | None:
        """The state of the environment, or None if it has no way to tell."""
        keeper = self._keeper()
        if keeper is None:
            return None
        state = keeper.get_state()
        if not isinstance(state, bytes | bytearray):
            return None  # a hook of the same name for another purpose
        return json.dumps(self._beside()).encode() + b"\n" + bytes(state)

    @saved.setter
    def saved(self, saved: bytes) -> None:
        beside, _, state = saved.partition(b"\n")
        keeper = self._keeper()
        assert keeper is not None, "only what was saved is put back"
        keeper.set_state(state)
        self._set_beside(json.loads(beside))

    @property
    def stayed(self) -> Made:
        """What is still as it was when the environment was made."""
        keeper = self._keeper()
        return {} if keeper is None else in_common([self.made, made_as(keeper)])

    def _keeper(self) -> Any:
        """The outermost that has hooks, if no wrapper around it has anything to tell itself."""
        env: Any = self._env
        if isinstance(env, Team):
            return env.team if _has_hooks(env.team) else None
        while not _has_hooks(env):
            if not isinstance(env, gym.Wrapper) or type(env) not in FORGETFUL:
                return None
            env = env.env
        return env

    def _beside(self) -> dict[str, Any]:
        """What the hooks of an environment easily forget."""
        if isinstance(self._env, Team):
            return self._env.beside()
        random = self._env.unwrapped.np_random.bit_generator.state
        beside: dict[str, Any] = {"elapsed": [limit._elapsed_steps for limit in self._limits()]}
        return beside | ({"random": random} if random["bit_generator"] == "PCG64" else {})

    def _set_beside(self, beside: dict[str, Any]) -> None:
        if isinstance(self._env, Team):
            self._env.set_beside(beside)
            return
        for limit, elapsed in zip(self._limits(), beside["elapsed"], strict=True):
            limit._elapsed_steps = elapsed
        if "random" in beside:
            self._env.unwrapped.np_random.bit_generator.state = beside["random"]

    def _limits(self) -> list[gym.wrappers.TimeLimit[Any, Any]]:
        """The time limits around the environment, of whose clocks it knows nothing."""
        env, found = self._env, []
        while isinstance(env, gym.Wrapper):
            if isinstance(env, gym.wrappers.TimeLimit):
                found.append(env)
            env = env.env
        return found


def _has_hooks(env: Any) -> bool:
    """Whether it has hooks of its own that can be called as ours are.

    A wrapper that passes on whatever it is asked for has none of its own, and methods of the same
    name for another purpose (MuJoCo's `set_state(qpos, qvel)`) are none.
    """
    for name, arguments in (("get_state", ()), ("set_state", (b"",))):
        own = hasattr(type(env), name) or name in getattr(env, "__dict__", {})
        if not own or not callable(getattr(env, name)):
            return False
        try:
            inspect.signature(getattr(env, name)).bind(*arguments)
        except TypeError:
            return False
        except ValueError:  # compiled code without a signature
            continue
    return True
