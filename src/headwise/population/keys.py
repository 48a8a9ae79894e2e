"""Keyed randomness: a number is a function of (member seed, stream, step, index), never of P.

So a member draws the same numbers alone, in a population, and in a permuted one. The generator is
Philox4x32-10, the same words as `cpp/core/rng.h`; on the CPU it is that code, on a GPU that of
`ops/philox.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import torch
from torch import Tensor

from headwise.checks import checked_seed
from headwise.errors import ConfigError
from headwise.ops.philox import uniforms


class Stream(IntEnum):
    """Every use of chance in a learner, in one place; two uses never share numbers."""

    INIT = 0
    """Parameters; the step is the number of the tensor."""
    ACT = 1
    """Actions taken in the environment."""
    EXPLORE = 2
    """Whether and how to deviate from the greedy action."""
    SHUFFLE = 3
    """The order of a rollout's rows in an epoch."""
    REPLAY = 4
    """Rows drawn from replay."""
    TARGET = 5
    """Next actions in a bootstrap target."""
    ACTOR = 6
    """Actions in an actor's loss."""
    EVALUATE = 7
    """Actions taken in evaluation."""
    SHIFT = 8
    """By how many pixels images of a batch are shifted."""


class Keys:
    """The seeds of the members, and the uniform numbers that follow from them.

    Args:
        seeds: One seed for each member, whole numbers from 0. Members with the same seed draw the
            same numbers, which is of use if they differ in a setting.
        device: Where the numbers are wanted.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu") -> None:
        self.seeds = _checked(seeds)
        self.device = torch.device(device)
        self._words = np.array(self.seeds, dtype=np.uint64)
        self.bits = torch.from_numpy(self._words.view(np.int64)).to(self.device)
        """The seeds, as the bits of int64 (P,)."""

    @property
    def num_members(self) -> int:
        """How many members there are (P)."""
        return len(self.seeds)

    def uniform(self, stream: Stream, step: int | Tensor, shape: Sequence[int]) -> Tensor:
        """Numbers in [0, 1), float32, (P, *shape); on a GPU the step may be a tensor there."""
        out = torch.empty(self.num_members, math.prod(shape), device=self.device)
        if isinstance(step, int) and self.device.type == "cpu":
            from headwise import _core

            _core.fill_uniforms(out.numpy(), self._words, int(stream), step)
        else:
            clock = torch.as_tensor(step, device=self.device).expand(self.num_members).contiguous()
            rows, seeds = out.view(self.num_members, 1, 1, -1), self.bits.view(-1, 1, 1, 1)
            uniforms(rows, seeds, clock.view(-1, 1, 1, 1), int(stream))
        return out.view(self.num_members, *shape)

    def at(self, step: int | Tensor) -> Draws:
        """The draws of one moment."""
        return Draws(self, step)


class ShapesOnly(Keys):
    """Keys whose numbers have a shape and no values.

    A learner that begins with them takes no memory, whatever its size, and tells what it would be.

    Args:
        seeds: One seed for each member.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        super().__init__(seeds, "meta")

    def uniform(self, stream: Stream, step: int | Tensor, shape: Sequence[int]) -> Tensor:
        """So many numbers, (P, *shape), without values."""
        return torch.empty(self.num_members, *shape, device=self.device)


class Draws:
    """`Keys` bound to a step: what an algorithm is handed, so that it never sees the clock."""

    def __init__(self, keys: Keys, step: int | Tensor) -> None:
        self._keys = keys
        self._step = step

    def uniform(self, stream: Stream, *shape: int) -> Tensor:
        """Numbers in [0, 1), float32, shape (P, *shape)."""
        return self._keys.uniform(stream, self._step, shape)


def to_normal(uniform: Tensor) -> Tensor:
    """Uniform numbers in [0, 1) as standard normal ones, each by itself."""
    # Shifted by half a step of the 24-bit grid: symmetric about 1/2, and never 0 or 1.
    return torch.erfinv(uniform.mul(2.0).add(2.0**-24 - 1.0)) * math.sqrt(2.0)


def _checked(seeds: Sequence[int]) -> tuple[int, ...]:
    checked = tuple(checked_seed(seed) for seed in seeds)
    if not checked:
        raise ConfigError("a population needs at least one seed", got=list(seeds))
    return checked
