"""Environments of users as tests imagine them, whose right answers are known."""

import copy
import json

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple


class Counter(gym.Env):
    """Observes (seed word, episode, step); a step earns 100 episode + 10 step + option.

    So every transition can be checked by itself: the successor of (w, e, t) is (w, e, t + 1), and
    the reward says of which step and action it is. Episodes last `length` steps, those of even
    number end by themselves and those of odd number are cut off.
    """

    observation_space = Box(0, 1e6, (3,), np.float64)
    action_space = Discrete(3)

    def __init__(self, length=4, spread=0, render_mode=None):
        self.length, self.spread, self.render_mode = length, spread, render_mode
        self.episode = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.word = float(self.np_random.integers(1000))
        self.episode += 1
        self.time = 0
        self.limit = self.length + int(self.np_random.integers(self.spread + 1))
        return self._obs(), self._info()

    def step(self, action):
        assert self.time < self.limit, "step after the end"
        reward = 100 * self.episode + 10 * self.time + float(action)
        self.time += 1
        over, even = self.time == self.limit, self.episode % 2 == 0
        return self._obs(), reward, over and even, over and not even, self._info()

    def _obs(self):
        return np.array([self.word, self.episode, self.time], dtype=np.float64)

    def _info(self):
        return {"note": "not for learners", "time": self.time}


class Resumable(Counter):
    """A Counter that can write down its state."""

    def get_state(self):
        return json.dumps([self.word, self.episode, self.time, self.limit]).encode()

    def set_state(self, state):
        self.word, self.episode, self.time, self.limit = json.loads(state)


def true_mask(time):
    """Which options of Discrete(3), then of Discrete(2), are legal at a time: unequal heads."""
    first = np.array([time % 2 == 0, True, time % 3 != 1])
    second = np.array([time % 2 == 1, time % 2 == 0])
    return first, second


class Masked(Counter):
    """A Counter with unequal heads that checks its own mask, given in one of many forms."""

    def __init__(self, form="flat", source="info", space="tuple", bare_end=False, **settings):
        super().__init__(**settings)
        self.form, self.source, self.bare_end = form, source, bare_end
        two = (Discrete(3), Discrete(2, start=5))
        self.action_space = {
            "tuple": Tuple(two),
            "dict": Dict(a=two[0], b=two[1]),
            "multi": MultiDiscrete([3, 2], start=[0, 5]),
            "hybrid": Tuple((Box(-1, 1, (2,)), *two)),
        }[space]
        self.kind = space
        if source == "obs":
            mask_space = {
                "flat": Box(0, 1, (5,), np.int8),
                "padded": MultiBinary((2, 3)),
                "dict": Dict(a=MultiBinary(3), b=MultiBinary(2)),
                "parts": Tuple((MultiBinary(3), MultiBinary(2))),
            }[form]
            self.observation_space = Dict(seen=Counter.observation_space, action_mask=mask_space)

    def mask(self):
        first, second = true_mask(self.time)
        if self.bare_end and self.time == self.limit:
            first, second = np.zeros(3, bool), np.zeros(2, bool)
        if self.form == "flat":
            return np.concatenate([first, second]).astype(np.int8)
        if self.form == "list":
            return [bool(x) for x in (*first, *second)]
        if self.form == "padded":
            return np.stack([first, np.append(second, False)]).astype(np.int8)
        if self.form == "dict":
            return {"a": first.astype(np.int8), "b": second.astype(np.int8)}
        parts = (first.astype(np.int8), second.astype(np.int8))
        return (None, *parts) if self.kind == "hybrid" else parts

    def step(self, action):
        values = list(action.values()) if isinstance(action, dict) else list(action)
        a, b = map(int, values[-2:])
        first, second = true_mask(self.time)
        assert first[a], "an illegal option was taken"
        assert second[b - 5], "an illegal option was taken"
        return super().step(a)

    def _obs(self):
        obs = super()._obs()
        return {"seen": obs, "action_mask": self.mask()} if self.source == "obs" else obs

    def _info(self):
        return {"action_mask": self.mask()} if self.source == "info" else {}

    def __getattr__(self, name):
        # Only an environment that gives its masks this way has the method.
        if name == "action_masks" and self.__dict__.get("source") == "method":
            return self.mask
        raise AttributeError(name)


class Nested(gym.Env):
    """Observations and actions of every kind, nested; it refuses what is not in its space."""

    observation_space = Dict(
        gear=Discrete(3, start=-1),
        flags=MultiBinary(2),
        place=Tuple((Box(-5, 5, (2, 2)), MultiDiscrete([2, 3]))),
    )
    action_space = Dict(
        arm=Dict(grip=Discrete(4, start=2), joints=Box(-2, 6, (2,), np.float64)),
        mode=Tuple((MultiDiscrete([2, 3]), MultiBinary(2))),
    )

    def __init__(self):
        self.observation_space = copy.deepcopy(self.observation_space)  # with its own randomness

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.time, self.obs = 0, self.observation_space.sample()
        return self.obs, {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.time += 1
        joints, grip = action["arm"]["joints"], action["arm"]["grip"]
        self.obs = self.observation_space.sample()
        return self.obs, float(joints.sum() + 100 * grip), False, self.time == 5, {}


class Relay:
    """A parallel environment of three agents, of whom `a_10` leaves after two steps.

    It follows PettingZoo's ParallelEnv without being one. Who is left earns 1 each; those who go on
    to the end are terminated, or cut off if `cut`.
    """

    metadata = {"name": "relay"}  # noqa: RUF012
    render_mode = None
    possible_agents = ("a_2", "a_10", "b")

    def __init__(self, cut=False, masks=None):
        self.cut, self.masks = cut, masks
        self.agents = []
        box = Box(-9, 9, (2,))
        seen = Dict(observation=box, action_mask=MultiBinary(3)) if masks == "obs" else box
        self._obs_space = {"a_2": seen, "a_10": seen, "b": Discrete(2, start=1)}
        self._act_space = {"a_2": Discrete(3), "a_10": Discrete(3), "b": Box(0, 4, (1,))}

    def observation_space(self, agent):
        return self._obs_space[agent]

    def action_space(self, agent):
        return self._act_space[agent]

    def reset(self, seed=None, options=None):
        self.agents, self.time, self.actions = list(self.possible_agents), 0, []
        return self._obs(), self._infos()

    def step(self, actions):
        assert set(actions) == set(self.agents), "those who have left must not act"
        self.actions.append(actions)
        self.time += 1
        team, over = list(self.agents), self.time == 4
        gone = {agent: over or (agent == "a_10" and self.time == 2) for agent in team}
        obs, infos = self._obs(), self._infos()
        self.agents = [agent for agent in team if not gone[agent]]
        cut = {agent: self.cut and over for agent in team}
        ended = {agent: gone[agent] and not cut[agent] for agent in team}
        return obs, dict.fromkeys(team, 1.0), ended, cut, infos

    def _obs(self):
        shown = {}
        for index, agent in enumerate(self.agents):
            obs = np.array([self.time + 1, index + 1], dtype=np.float32)
            if agent == "b":
                shown[agent] = 1 + self.time % 2
            elif self.masks == "obs":
                shown[agent] = {"observation": obs, "action_mask": self._mask(agent)}
            else:
                shown[agent] = obs
        return shown

    def _infos(self):
        if self.masks != "info":
            return {agent: {} for agent in self.agents}
        return {
            agent: {} if agent == "b" else {"action_mask": self._mask(agent)}
            for agent in self.agents
        }

    def _mask(self, agent):
        return np.array([1, self.time % 2, agent == "a_10"], dtype=np.int8)

    def close(self):
        pass
