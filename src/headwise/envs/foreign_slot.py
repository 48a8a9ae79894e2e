"""One environment of a user as a slot: checked, its observation flat, its mask read.

A slot is a `gymnasium.Env` itself, so that Gymnasium's vector environments can run many of them, in
this process or in others.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import wrappers
from numpy.typing import NDArray

from headwise.envs.foreign_codec import EnvCodec
from headwise.envs.foreign_made import Made, in_common, made_as
from headwise.envs.masks import MASK, MASK_METHOD, Legal
from headwise.errors import EnvError, SpaceError

TeamReward: TypeAlias = Literal["sum", "mean"]
Observation: TypeAlias = NDArray[np.float32]
Stepped: TypeAlias = tuple[Observation, float, bool, bool, dict[str, Any]]

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


class Slot(gym.Env[Observation, Any]):
    """What both kinds of slot share.

    Args:
        env: The environment.
        codec: What translates its observations and masks.
        action_space: What it takes, in Gymnasium's form.
        where: What messages call it: the environment, slot and member.
    """

    def __init__(self, env: Any, codec: EnvCodec, action_space: gym.Space[Any], where: str) -> None:
        self.env = env
        self.where = where
        self.codec = codec
        self.action_space = action_space
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (codec.obs_spec.size,), np.float32)
        self.metadata = dict(getattr(env, "metadata", {}))
        self.render_mode = getattr(env, "render_mode", None)
        keeper = self._keeper()
        self.made: Made = {} if keeper is None else made_as(keeper)
        """How the environment was made, as far as its state will be kept."""

    def render(self) -> Any:
        """Whatever the environment draws."""
        return self.env.render()

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    # --- what the environment says ----------------------------------------------------------------

    def _flat(self, obs: Any) -> Observation:
        """An observation as a vector; what does not fit is refused by place."""
        try:
            return self.codec.flatten(obs)
        except SpaceError as error:
            raise SpaceError(f"{self.where}: {error}") from error

    def _legal(self, mask: Any) -> Legal:
        """A mask as (H, K); what does not fit is refused by place."""
        try:
            return self.codec.legal(mask)
        except EnvError as error:
            raise EnvError(f"{self.where}: {error}") from error

    def _number(self, reward: Any) -> float:
        """A reward as a number, finite or not."""
        try:
            if not isinstance(reward, str | bytes):
                return float(reward)
        except (TypeError, ValueError, OverflowError):
            pass
        raise EnvError(f"{self.where}: the reward is no number", got=reward, allowed="numbers")

    def _of_length(self, length: int, result: Any, call: str) -> Any:
        if isinstance(result, tuple) and len(result) == length:
            return result
        returns = "(obs, info)" if length == 2 else "(obs, reward, terminated, truncated, info)"
        raise EnvError(
            f"{self.where}: {call}() returned something else than Gymnasium's {length} values",
            got=f"{len(result)} values" if isinstance(result, tuple) else result,
            allowed=returns,
            fix="Bring it up to Gymnasium's API of today; shimmy wraps older environments.",
        )

    # --- resuming -------------------------------------------------------------------------------

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
        """Who can tell the whole state and go back to it, or None."""
        return self.env if _has_hooks(self.env) else None

    def _beside(self) -> dict[str, Any]:
        """What the hooks of an environment easily forget."""
        return {}

    def _set_beside(self, beside: dict[str, Any]) -> None:
        """Goes back to it."""


class GymSlot(Slot):
    """A slot with a Gymnasium environment."""

    def __init__(self, env: gym.Env[Any, Any], codec: EnvCodec, where: str) -> None:
        super().__init__(env, codec, env.action_space, where)
        self._has_method = env.has_wrapper_attr(MASK_METHOD)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; the info holds nothing but the mask, if there is one."""
        obs, info = self._of_length(2, self.env.reset(seed=seed, options=options), "reset")
        return self._flat(obs), self._info(obs, info)

    def step(self, action: Any) -> Stepped:
        """One step."""
        obs, reward, terminated, truncated, info = self._of_length(
            5, self.env.step(self.codec.actions.as_sampled(action)), "step"
        )
        return (
            self._flat(obs),
            self._number(reward),
            bool(terminated),
            bool(truncated),
            self._info(obs, info),
        )

    def _info(self, obs: Any, info: Any) -> dict[str, Any]:
        known, mask = told_mask(self.codec, self.env, obs, info, asks=self._has_method)
        return {MASK: self._legal(mask)} if known else {}

    def _keeper(self) -> Any:
        """The outermost that has hooks, if no wrapper around it has anything to tell itself."""
        env: gym.Env[Any, Any] = self.env
        while not _has_hooks(env):
            if not isinstance(env, gym.Wrapper) or type(env) not in FORGETFUL:
                return None
            env = env.env
        return env

    def _beside(self) -> dict[str, Any]:
        random = self.env.unwrapped.np_random.bit_generator.state
        beside: dict[str, Any] = {"elapsed": [limit._elapsed_steps for limit in self._limits()]}
        return beside | ({"random": random} if random["bit_generator"] == "PCG64" else {})

    def _set_beside(self, beside: dict[str, Any]) -> None:
        for limit, elapsed in zip(self._limits(), beside["elapsed"], strict=True):
            limit._elapsed_steps = elapsed
        if "random" in beside:
            self.env.unwrapped.np_random.bit_generator.state = beside["random"]

    def _limits(self) -> list[gym.wrappers.TimeLimit[Any, Any]]:
        """The time limits around the environment, of whose clocks it knows nothing."""
        env, found = self.env, []
        while isinstance(env, gym.Wrapper):
            if isinstance(env, gym.wrappers.TimeLimit):
                found.append(env)
            env = env.env
        return found


class TeamSlot(Slot):
    """A slot with a PettingZoo parallel environment: all agents act as one.

    The reward is the team's. An agent that has left is observed as zeros, and its heads are
    ignored. The episode is over when no agent is left: terminated if every agent was, and otherwise
    truncated.

    Args:
        env: The parallel environment.
        codec: The codec of the team.
        where: What messages call it.
        team_reward: "sum" of the agents' rewards, or their "mean" over all possible agents.
    """

    def __init__(
        self, env: Any, codec: EnvCodec, where: str, team_reward: TeamReward = "sum"
    ) -> None:
        self._agents: list[str] = list(env.possible_agents)
        action_space = gym.spaces.Dict([(a, env.action_space(a)) for a in self._agents])
        super().__init__(env, codec, action_space, where)
        self._share = 1.0 / len(self._agents) if team_reward == "mean" else 1.0
        self._took_part: set[str] = set()
        self._terminated: set[str] = set()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode; the info holds nothing but the mask, if there is one."""
        obs, infos = self._of_length(2, self.env.reset(seed=seed, options=options), "reset")
        self._took_part = set(self.env.agents)
        self._terminated = set()
        return self._flat(obs), self._info(obs, infos)

    def step(self, action: Mapping[str, Any]) -> Stepped:
        """One step of the team; those who have left do not act."""
        all_acting = self.codec.actions.as_sampled(action)
        acting = {agent: all_acting[agent] for agent in self.env.agents}
        obs, rewards, terminations, truncations, infos = self._of_length(
            5, self.env.step(acting), "step"
        )
        self._took_part |= set(self.env.agents)
        self._terminated |= {agent for agent, ended in terminations.items() if ended}
        left = [
            agent
            for agent in self.env.agents
            if not terminations.get(agent, False) and not truncations.get(agent, False)
        ]
        reward = self._share * sum(map(self._number, rewards.values()))
        terminated = not left and self._took_part <= self._terminated
        truncated = not left and not terminated
        return self._flat(obs), reward, terminated, truncated, self._info(obs, infos)

    def _info(self, obs: Mapping[str, Any], infos: Any) -> dict[str, Any]:
        if not self.codec.reads_masks:
            return {}
        infos = infos if isinstance(infos, Mapping) else {}
        masks = {}
        for agent in self.env.agents:
            seen, told = obs.get(agent), infos.get(agent)
            for source in (seen, told):
                if isinstance(source, Mapping) and MASK in source:
                    masks[agent] = source[MASK]
                    break
        known = masks or self.codec.mask_in_obs
        return {MASK: self._legal(masks)} if known else {}

    def _beside(self) -> dict[str, Any]:
        groups = {"took_part": self._took_part, "terminated": self._terminated}
        return {name: sorted(map(self._agents.index, group)) for name, group in groups.items()}

    def _set_beside(self, beside: dict[str, Any]) -> None:
        self._took_part = {self._agents[index] for index in beside["took_part"]}
        self._terminated = {self._agents[index] for index in beside["terminated"]}


def told_mask(
    codec: EnvCodec, env: gym.Env[Any, Any], obs: Any, info: Any, *, asks: bool
) -> tuple[bool, Any]:
    """Whether an environment tells a mask, and the mask as it does: in `obs`, `info` or by method.

    Args:
        codec: What reads its masks.
        env: The environment.
        obs: What it has just shown.
        info: What it said beside that.
        asks: Whether it has the method.
    """
    if not codec.reads_masks:
        return False, None
    if codec.mask_in_obs:
        return True, obs[MASK]
    if isinstance(info, Mapping) and MASK in info:
        return True, info[MASK]
    if asks:
        return True, env.get_wrapper_attr(MASK_METHOD)()
    return False, None


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
