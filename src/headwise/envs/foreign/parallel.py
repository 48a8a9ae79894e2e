"""A PettingZoo parallel environment as one Gymnasium environment: all agents act as one."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from headwise.envs.foreign import diagnose
from headwise.envs.foreign.codec import EnvCodec
from headwise.envs.masks import MASK
from headwise.errors import EnvError, SpaceError
from headwise.spaces.observation import absent

TeamReward: TypeAlias = Literal["sum", "mean"]
_NOUGHT = 1e-9
_told: set[str] = set()  # of which teams users know that they earn nothing
logger = logging.getLogger("headwise")


class Team(gym.Env[Any, Any]):
    """All agents of a parallel environment as one.

    The reward is the team's. An agent that has left is observed as zeros, and its heads are
    ignored. The episode is over when no agent is left: terminated if every agent was, and otherwise
    truncated.

    Args:
        team: The parallel environment.
        codec: The codec of the team.
        where: What messages call it.
        team_reward: "sum" of the agents' rewards, or their "mean" over all possible agents.
    """

    def __init__(
        self, team: Any, codec: EnvCodec, where: str, team_reward: TeamReward = "sum"
    ) -> None:
        self.team, self._codec, self._where = team, codec, where
        self._agents: list[str] = list(team.possible_agents)
        self.action_space = spaces.Dict([(a, team.action_space(a)) for a in self._agents])
        shown = [(a, codec.without_mask(team.observation_space(a))[0]) for a in self._agents]
        self.observation_space = spaces.Dict(shown)
        self._absent = {agent: _absent(space) for agent, space in shown}
        self.metadata = dict(getattr(team, "metadata", {}))
        self.render_mode = getattr(team, "render_mode", None)
        self._share = 1.0 / len(self._agents) if team_reward == "mean" else 1.0
        self._took_part: set[str] = set()
        self._terminated: set[str] = set()
        self._paid = self._earned = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; the info holds nothing but the masks, if there are any."""
        result = self.team.reset(seed=seed, options=options)
        if not isinstance(result, tuple) or len(result) != 2:
            raise diagnose.returned(self._where, 2, result, "reset")
        self._took_part = set(self.team.agents)
        self._terminated = set()
        return self._seen(result[0]), self._info(*result)

    def step(self, action: Mapping[str, Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step of the team; those who have left do not act."""
        result = self.team.step({agent: action[agent] for agent in self.team.agents})
        if not isinstance(result, tuple) or len(result) != 5:
            raise diagnose.returned(self._where, 5, result, "step")
        obs, rewards, terminations, truncations, infos = result
        self._took_part |= set(self.team.agents)
        self._terminated |= {agent for agent, ended in terminations.items() if ended}
        left = [
            agent
            for agent in self.team.agents
            if not terminations.get(agent, False) and not truncations.get(agent, False)
        ]
        paid = [diagnose.number(self._where, reward) for reward in rewards.values()]
        reward = self._share * sum(paid)
        self._paid = self._paid or any(paid)
        self._earned = self._earned or not abs(reward) <= _NOUGHT
        terminated = not left and self._took_part <= self._terminated
        if not left and self._paid and not self._earned:
            self._say_that_it_earns_nothing()
        return (
            self._seen(obs),
            reward,
            terminated,
            not left and not terminated,
            self._info(obs, infos),
        )

    def render(self) -> Any:
        """Whatever the environment draws."""
        return self.team.render()

    def close(self) -> None:
        """Closes the environment."""
        self.team.close()

    def beside(self) -> dict[str, Any]:
        """What is known of an episode under way beside the state of the environment."""
        groups = {"took_part": self._took_part, "terminated": self._terminated}
        return {name: sorted(map(self._agents.index, group)) for name, group in groups.items()}

    def set_beside(self, beside: dict[str, Any]) -> None:
        """Goes back to it."""
        self._took_part = {self._agents[index] for index in beside["took_part"]}
        self._terminated = {self._agents[index] for index in beside["terminated"]}

    def _seen(self, obs: Any) -> dict[str, Any]:
        """What all agents see, the mask left out."""
        try:
            self._codec.check_agents(obs)
        except SpaceError as error:
            raise SpaceError(f"{self._where}: {error}") from error
        return {agent: obs.get(agent, away) for agent, away in self._absent.items()}

    def _info(self, obs: Mapping[str, Any], infos: Any) -> dict[str, Any]:
        if not self._codec.reads_masks:
            return {}
        infos = infos if isinstance(infos, Mapping) else {}
        masks = {}
        for agent in self.team.agents:
            for source in (obs.get(agent), infos.get(agent)):
                if isinstance(source, Mapping) and MASK in source:
                    masks[agent] = source[MASK]
                    break
        return {MASK: masks} if masks or self._codec.mask_in_obs else {}

    def _say_that_it_earns_nothing(self) -> None:
        name = type(getattr(self.team, "unwrapped", self.team)).__name__
        if name not in _told:
            _told.add(name)
            logger.warning(
                "%s: the rewards of its agents sum to zero in every step, so that as a team they "
                "have nothing to learn. Let some of them be part of the environment: wrap it so "
                "that they act by a rule, and the others are the team.",
                name,
            )


def parallel(env: Any) -> Any:
    """An environment whose agents act in turns as one whose agents act at once; others as is."""
    if not (hasattr(env, "agent_selection") or hasattr(env, "agent_iter")):
        return env
    from pettingzoo.utils.conversions import aec_to_parallel

    try:
        return aec_to_parallel(env)
    except AssertionError as error:
        raise EnvError(
            f"{type(env).__name__}: its agents act in turns, and what one does may depend on what "
            "another did before it in the same round",
            allowed="environments whose agents act at once (ParallelEnv), or that say so: "
            'metadata["is_parallelizable"]',
            fix="Wrap it as a Gymnasium environment in which one agent acts and a rule the others.",
        ) from error


def _absent(space: spaces.Space[Any]) -> Any:
    """What stands for an observation that is not there: zeros, and no option at all."""
    if isinstance(space, spaces.Dict):
        return {key: _absent(part) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_absent(part) for part in space.spaces)
    zeros = np.zeros(space.shape or (), space.dtype)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return zeros + absent(zeros.dtype)
    return zeros
