"""Our compiled environments as PettingZoo parallel environments: the heads as a team of agents.

Importing this module also puts them into PettingZoo's own registry, where it has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from headwise.envs.native import NATIVE_NAMES, env_id
from headwise.envs.native.actions import HeadsForm
from headwise.envs.native.engine import Engine
from headwise.envs.native.gym_env import NativeEnv, Observation
from headwise.envs.native.info import AgentHeads, info_of
from headwise.errors import EnvError, SpaceError
from headwise.registry import unknown
from headwise.spaces import ActionSpec

try:
    import pettingzoo
except ImportError as error:
    raise EnvError(
        "parallel environments need PettingZoo, which is not installed",
        fix="Install it: pip install 'headwise[pettingzoo]'.",
    ) from error

TEAMS = {name: agents for name in NATIVE_NAMES if (agents := info_of(name).agents) is not None}
"""Who acts in each environment that can be played by a team."""
IGNORED_OPTION = "options"
"""PettingZoo's own API test resets with {"options": 1}; every other unknown option is refused."""


def parallel_env(name: str, **settings: Any) -> NativeParallelEnv:
    """A compiled environment for a team: CoopPush, HybridShoot or ContextualDecoupler.

    Args:
        name: The environment, for example "CoopPush".
        **settings: Its settings, and those of NativeParallelEnv.
    """
    return NativeParallelEnv(name, **settings)


class NativeParallelEnv(pettingzoo.ParallelEnv[str, Observation, Any]):  # type: ignore[misc]
    """A compiled environment whose heads belong to several agents with one common reward.

    CoopPush has an agent for each particle, which sees its own place first; HybridShoot has a
    selector and a shooter; ContextualDecoupler has an agent for each head.

    Args:
        name: The environment.
        render_mode: "human", "rgb_array" or None.
        max_episode_steps: The time limit; None takes the environment's own, -1 means none.
        max_cycles: The same, by the name that `pettingzoo.make` gives it.
        **settings: Settings of the environment, `settings_of(name)`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's own convention)
        **NativeEnv.metadata,
        "name": "headwise",
        "is_parallelizable": True,
    }

    def __init__(
        self,
        name: str,
        *,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        max_cycles: int | None = None,
        **settings: Any,
    ) -> None:
        if name not in TEAMS:
            raise unknown("environment for a team", name, TEAMS)
        limit = max_cycles if max_episode_steps is None else max_episode_steps
        self._env = env = NativeEnv(
            name, render_mode=render_mode, max_episode_steps=limit, **settings
        )
        agents = TEAMS[name](env.engine)
        self._team = _TeamForm(env.engine, agents)
        self.possible_agents = list(self._team.forms)
        self.agents: list[str] = []
        self.render_mode = render_mode
        self.metadata = {**self.metadata, **env.metadata, "name": env_id(name)}
        self.state_space = env.observation_space
        self.action_spaces = {agent: form.space for agent, form in self._team.forms.items()}
        low, high = env.engine.obs_low, env.engine.obs_high
        as_it_is = np.arange(len(low))
        self._orders = {
            agent: as_it_is if part.order is None else part.order for agent, part in agents.items()
        }
        self.observation_spaces = {
            agent: gym.spaces.Box(low[order], high[order]) for agent, order in self._orders.items()
        }

    def observation_space(self, agent: str) -> gym.spaces.Box[np.float32]:
        """What an agent observes; the same object at every call."""
        return self.observation_spaces[self._known(agent)]

    def action_space(self, agent: str) -> gym.spaces.Space[Any]:
        """What an agent may do; the same object at every call."""
        return self.action_spaces[self._known(agent)]

    def action_spec(self, agent: str) -> ActionSpec:
        """The heads of one agent."""
        return self._team.forms[self._known(agent)].spec

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Starts an episode.

        Args:
            seed: Where randomness starts; without one, the stream goes on.
            options: Parts of the state to start from, as for the Gymnasium environment.
        """
        if isinstance(options, Mapping):
            options = {name: part for name, part in options.items() if name != IGNORED_OPTION}
        obs, _ = self._env.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._for_all(obs), {agent: {} for agent in self.agents}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """One step with an action of every agent; all get the same reward and end together."""
        obs, reward, terminated, truncated, _ = self._env.step_with(self._team, actions)
        team = self.agents
        if terminated or truncated:
            self.agents = []
        return (
            self._for_all(obs),
            dict.fromkeys(team, reward),
            dict.fromkeys(team, terminated),
            dict.fromkeys(team, truncated),
            {agent: {} for agent in team},
        )

    def state(self) -> Observation:
        """What the whole team knows: the observation of the Gymnasium environment."""
        obs: Observation = self._env.engine.obs[0]
        return obs.copy()

    def get_state(self) -> dict[str, NDArray[np.float64]]:
        """The state of the environment, part by part."""
        return self._env.get_state()

    def set_state(self, state: Mapping[str, Any]) -> dict[str, Observation]:
        """Sets parts of the state and returns what the agents observe now."""
        obs = self._env.set_state(state)
        self.agents = list(self.possible_agents)
        return self._for_all(obs)

    def snapshot(self) -> bytes:
        """The whole state, randomness included."""
        return self._env.snapshot()

    def render(self) -> NDArray[np.uint8] | None:
        """The picture of the state: an array for "rgb_array", a window for "human"."""
        return self._env.render()

    def close(self) -> None:
        """Closes the window, if there is one; closing twice is fine."""
        self._env.close()

    def _for_all(self, obs: Observation) -> dict[str, Observation]:
        return {agent: obs[order] for agent, order in self._orders.items()}

    def _known(self, agent: str) -> str:
        if agent not in self._team.forms:
            raise unknown("agent", agent, self._team.forms)
        return agent


class _TeamForm:
    """An action of the whole team: a dict by agent."""

    def __init__(self, engine: Engine, agents: Mapping[str, AgentHeads]) -> None:
        self.forms = forms = {
            agent: HeadsForm(
                engine,
                batched=False,
                choices=part.choices,
                ranges=part.ranges,
                who=f"the action of {agent}",
            )
            for agent, part in agents.items()
        }
        self.spec = engine.spec
        self.space: gym.spaces.Space[Any] = gym.spaces.Dict(
            {agent: form.space for agent, form in forms.items()}
        )
        self._name = engine.name

    def write(self, action: Any) -> None:
        if not isinstance(action, Mapping):
            raise SpaceError(f"{self._name}: the actions are no dict by agent", got=action)
        if set(action) != set(self.forms):
            raise SpaceError(
                f"{self._name}: every agent must act, and no other",
                got=f"actions of {sorted(map(str, action))}",
                allowed=", ".join(self.forms),
            )
        for agent, form in self.forms.items():
            form.write(action[agent])


def _register_with_pettingzoo() -> None:
    known = getattr(pettingzoo, "parallel_registry", None)
    register = getattr(pettingzoo, "register", None)
    if known is None or register is None:  # older ones have no registry
        return
    for name in TEAMS:
        if env_id(name) not in known:
            entry_point = "headwise.envs.native.parallel_env:parallel_env"
            register("parallel", env_id(name), entry_point=entry_point, kwargs={"name": name})


_register_with_pettingzoo()
