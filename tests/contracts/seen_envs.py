"""Small environments whose observations need an encoder, and modules that could be one."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from torch import nn

ACTIONS = spaces.Dict(row=spaces.Discrete(2), column=spaces.Discrete(2))
HYBRID = spaces.Dict(row=spaces.Discrete(2), push=spaces.Box(-1.0, 1.0, ()))
LENGTH = 8


class _Episodes(gym.Env):
    """Episodes of a few steps, each of which shows something new."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.show(), {}

    def step(self, action):
        reward = float(self.reward(action))
        self.steps += 1
        return self.show(), reward, self.steps >= LENGTH, False, {}


class Corner(_Episodes):
    """A picture with a bright corner: rewards for its row, and for its column or its side."""

    def __init__(self, size: int = 8, hybrid: bool = False) -> None:
        self.size, self.hybrid = size, hybrid
        self.observation_space = spaces.Box(0, 255, (size, size, 1), np.uint8)
        self.action_space = HYBRID if hybrid else ACTIONS

    def show(self):
        picture = self.np_random.integers(0, 60, (self.size, self.size, 1)).astype(np.uint8)
        self.at = self.np_random.integers(0, 2, 2)
        half = self.size // 2
        row, column = self.at * half
        picture[row : row + half, column : column + half] += 150
        return picture

    def reward(self, action):
        found = 0.5 * (int(action["row"]) == self.at[0])
        if self.hybrid:
            return found + 0.5 * (1.0 - abs(float(action["push"]) - (2 * self.at[1] - 1)) / 2.0)
        return found + 0.5 * (int(action["column"]) == self.at[1])


class Largest(_Episodes):
    """A set of numbers, some absent: which of the present ones is the largest?"""

    def __init__(self, count: int = 4) -> None:
        self.count = count
        self.observation_space = spaces.Dict(
            units=spaces.Box(-1.0, 1.0, (count, 1 + count), np.float32),
            there=spaces.MultiBinary(count),
        )
        self.action_space = spaces.Dict(row=spaces.Discrete(count), column=spaces.Discrete(2))

    def show(self):
        self.there = self.np_random.random(self.count) < 0.7
        self.there[self.np_random.integers(self.count)] = True
        self.numbers = self.np_random.uniform(-1.0, 1.0, self.count)
        units = np.concatenate([self.numbers[:, None], np.eye(self.count)], axis=1)
        order = self.np_random.permutation(self.count)
        there = self.there[order].astype(np.int8)
        return {"units": units[order].astype(np.float32), "there": there}

    def reward(self, action):
        best = np.where(self.there, self.numbers, -2.0)
        return 0.5 * (int(action["row"]) == best.argmax()) + 0.5 * (
            int(action["column"]) == (best.max() > 0.5)
        )


class Dashboard(_Episodes):
    """A picture, a dial and a gear: several leaves at once."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict(
            picture=spaces.Box(0, 255, (8, 8, 1), np.uint8),
            inside=spaces.Tuple([spaces.Box(-2.0, 2.0, (3,)), spaces.Discrete(3)]),
        )
        self.action_space = ACTIONS

    def show(self):
        self.gear = int(self.np_random.integers(3))
        return {
            "picture": self.np_random.integers(0, 255, (8, 8, 1)).astype(np.uint8),
            "inside": (self.np_random.uniform(-1, 1, 3).astype(np.float32), self.gear),
        }

    def reward(self, action):
        return float(int(action["row"]) == self.gear % 2)


class Own(nn.Module):
    """A module as a user would write it, for any of these spaces."""

    def __init__(self, space: spaces.Space[Any], width: int = 8) -> None:
        super().__init__()
        size = int(sum(np.prod(shape) for shape in shapes_of(space)))
        self.net = nn.Sequential(nn.Linear(size, width), nn.Tanh())
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, obs: Any) -> torch.Tensor:
        return self.net(torch.cat([x.flatten(1) for x in tensors_of(obs)], dim=1)) * self.scale


def tensors_of(obs: Any) -> list[torch.Tensor]:
    if isinstance(obs, dict):
        return [x for key in sorted(obs) for x in tensors_of(obs[key])]
    if isinstance(obs, tuple):
        return [x for one in obs for x in tensors_of(one)]
    return [obs]


def shapes_of(space: spaces.Space[Any]) -> list[tuple[int, ...]]:
    if isinstance(space, spaces.Dict):
        return [x for one in space.spaces.values() for x in shapes_of(one)]
    if isinstance(space, spaces.Tuple):
        return [x for one in space.spaces for x in shapes_of(one)]
    return [(int(space.n),)] if isinstance(space, spaces.Discrete) else [space.shape]
