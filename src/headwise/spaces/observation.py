"""Gymnasium observation spaces, however nested, as one row of float32 words with named slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from headwise.errors import SpaceError
from headwise.spaces._leaves import Categories, Numbers, ObsLeaf, Packed, absent, of_box
from headwise.spaces.action import MAX_OPTIONS
from headwise.spaces.prior import ObsPrior

__all__ = ["ObsCodec", "ObsLeaf", "ObsSpec", "absent"]


@dataclass(frozen=True)
class ObsSpec:
    """The layout of an observation as a row of float32 words: which part came from where.

    A leaf of numbers fills a word for each, a category one for each option. A packed leaf fills its
    words with bytes: only `nets/preprocess.py` reads them as numbers.
    """

    size: int
    slices: dict[str, slice]
    """The words that each leaf of the space fills, by its path."""
    is_bytes: bool = False
    """Whether the spaces promise nothing but whole numbers from 0 to 255, as images are."""
    prior: ObsPrior | None = field(default=None, compare=False, repr=False)
    """How `normalize_obs="auto"` begins; None, where nothing is scaled by default."""
    leaves: tuple[ObsLeaf, ...] = field(default=(), compare=False, repr=False)
    """What the slices are made of; empty for a plain vector."""
    space: Any = field(default=None, compare=False, repr=False)
    """The space itself; None for a plain vector."""

    @classmethod
    def flat(cls, size: int, name: str = "observation") -> ObsSpec:
        """An observation that is a plain vector already."""
        return cls(size, {name: slice(0, size)})

    @cached_property
    def packed(self) -> tuple[slice, ...]:
        """The words that are no numbers."""
        return tuple(self.slices[leaf.path] for leaf in self.leaves if leaf.is_packed)

    @cached_property
    def numbers(self) -> tuple[slice, ...]:
        """The words that are numbers, in runs that are as long as can be."""
        return numbers_beside(self.packed, self.size)

    @cached_property
    def vector_size(self) -> int:
        """Numbers of an observation as networks of vectors see it: bytes are one each."""
        count = sum(part.stop - part.start for part in self.numbers)
        return int(count + sum(math.prod(leaf.shape) for leaf in self.leaves if leaf.is_packed))


def numbers_beside(packed: Sequence[slice], size: int) -> tuple[slice, ...]:
    """The words between those that are packed, in runs that are as long as can be."""
    edges = [0, *(edge for part in packed for edge in (part.start, part.stop)), size]
    runs = zip(edges[::2], edges[1::2], strict=True)
    return tuple(slice(start, stop) for start, stop in runs if start < stop)


class ObsCodec:
    """Flattens observations of a Gymnasium space: numbers as they are, categories one-hot.

    Box, Discrete, MultiDiscrete, MultiBinary, Tuple and Dict are understood, in any nesting. A
    picture (a Box of bytes from 0 to 255 with a height, a width and maybe channels) stays bytes,
    four to a word of the vector.

    Examples:
        >>> from gymnasium.spaces import Box, Dict, Discrete
        >>> codec = ObsCodec(Dict(gear=Discrete(3), speed=Box(0, 9, (1,))))
        >>> codec.flatten({"gear": 1, "speed": np.array([4.5])})
        array([0. , 1. , 0. , 4.5], dtype=float32)
        >>> codec.spec.slices
        {'gear': slice(0, 3, None), 'speed': slice(3, 4, None)}
    """

    def __init__(self, space: spaces.Space[Any]) -> None:
        self._leaves: list[Numbers] = []
        self._plan(space, "", ())
        self._finish(space)

    @property
    def leaves(self) -> tuple[ObsLeaf, ...]:
        """The arrays that an observation is made of, in the order of the vector."""
        return tuple(leaf.described() for leaf in self._leaves)

    @classmethod
    def of_agents(cls, observation_spaces: Mapping[str, spaces.Space[Any]]) -> ObsCodec:
        """The observations of all agents of a PettingZoo parallel environment, side by side."""
        codec = cls.__new__(cls)
        codec._leaves = []
        for agent, space in observation_spaces.items():
            codec._plan(space, agent, (agent,))
        for leaf in codec._leaves:
            leaf.may_be_absent = True
        codec._finish(observation_spaces)
        return codec

    def _finish(self, space: Any) -> None:
        if not self._leaves:
            raise SpaceError("the observation space is empty", got=space)
        slices: dict[str, slice] = {}
        start = 0
        for leaf in self._leaves:
            if leaf.path in slices:
                raise SpaceError("two places of the space share a name", got=leaf.path)
            slices[leaf.path] = slice(start, start + leaf.size)
            start += leaf.size
        if start == 0:
            raise SpaceError(
                "the observation space has no elements",
                got=space,
                fix="Give the agent something to see, if only a constant: Box(0, 1, (1,)).",
            )
        prior = ObsPrior.joined([leaf.prior() for leaf in self._leaves])
        only_bytes = all(leaf.is_bytes for leaf in self._leaves)
        whole = space if isinstance(space, spaces.Space) else spaces.Dict(space)
        self.spec = ObsSpec(start, slices, only_bytes, prior, self.leaves, whole)

    def is_batch(self, obs: Any) -> bool:
        """Whether an observation has one axis more than a single one, as a batch has."""
        leaf = self._leaves[0]
        return leaf.pick(obs).ndim == len(leaf.shape) + 1

    def flatten(self, obs: Any) -> NDArray[np.float32]:
        """One observation as a vector `(size,)`."""
        out = np.empty((1, self.spec.size), dtype=np.float32)
        self._fill(obs, out, batched=False)
        return out.reshape(-1)

    def flatten_batch(
        self, obs: Any, out: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """A batch in Gymnasium's form as an array `(B, size)`, written into `out` if given."""
        if out is None:
            column = self._leaves[0].pick(obs)
            if column.ndim and not len(column):
                raise SpaceError(
                    "the batch has no observations", got=column.shape, allowed="one or more rows"
                )
            out = np.empty((len(column) if column.ndim else 0, self.spec.size), dtype=np.float32)
        self._fill(obs, out, batched=True)
        return out

    def leaves_of(self, obs: Any, rows: int) -> dict[str, NDArray[Any]]:
        """The arrays of a batch in Gymnasium's form by their paths, in the types they come in."""
        found = {}
        for leaf in self._leaves:
            values = found[leaf.path] = leaf.pick(obs)
            if values.shape != (rows, *leaf.shape):
                raise leaf.misshapen(values, (rows, *leaf.shape))
        return found

    def stacked(self, many: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """The same of single observations."""
        found = {}
        for leaf in self._leaves:
            picked = [leaf.pick(obs) for obs in many]
            values = found[leaf.path] = picked[0][None] if len(picked) == 1 else np.array(picked)
            if values.shape != (len(many), *leaf.shape):
                raise leaf.misshapen(values[0], leaf.shape)
        return found

    def write(
        self,
        leaves: Mapping[str, NDArray[Any]],
        out: NDArray[np.float32],
        where: Callable[[int], str] | None = None,
    ) -> None:
        """Arrays (N, ...) by their paths as vectors `(N, size)`.

        Args:
            leaves: The arrays.
            out: Where the vectors go.
            where: What messages call a row.
        """
        for leaf, part in zip(self._leaves, self.spec.slices.values(), strict=True):
            leaf.write(leaves[leaf.path].reshape(len(out), -1), out[:, part], where)

    def read(self, rows: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """The arrays in rows `(..., size)` by their paths, `(..., *shape)`: what `write` wrote.

        Categories stay one-hot, (..., options).
        """
        found: dict[str, NDArray[Any]] = {}
        for leaf in self.leaves:
            words: NDArray[Any] = rows[..., self.spec.slices[leaf.path]]
            if leaf.is_packed:
                words = np.ascontiguousarray(words).view(np.uint8)[..., : math.prod(leaf.shape)]
            shape = words.shape[-1:] if leaf.counts is not None else leaf.shape
            found[leaf.path] = words.reshape(*rows.shape[:-1], *shape)
        return found

    def as_it_comes(self, rows: NDArray[np.float32]) -> NDArray[Any] | None:
        """Whole rows `(N, size)` as the array that an observation is, in the type of its space.

        None where an observation is several arrays, or one that is written in another type.
        """
        leaf = self._leaves[0]
        if len(self._leaves) > 1 or not rows.flags.c_contiguous:
            return None
        octets = rows.view(np.uint8)
        if type(leaf) is Packed and octets.shape[1] == math.prod(leaf.shape):
            return octets.reshape(len(rows), *leaf.shape)
        is_same = type(leaf) is Numbers and leaf.dtype == np.float32
        return rows.reshape(len(rows), *leaf.shape) if is_same else None

    @property
    def places(self) -> list[tuple[str, tuple[Any, ...], np.dtype[Any]]]:
        """For each array its path, the keys that lead to it, and its type in the space."""
        return [(leaf.path, leaf.keys, leaf.dtype) for leaf in self._leaves]

    def _fill(self, obs: Any, out: NDArray[np.float32], *, batched: bool) -> None:
        for leaf, where in zip(self._leaves, self.spec.slices.values(), strict=True):
            values = leaf.pick(obs)
            shape = (len(out), *leaf.shape) if batched else leaf.shape
            if values.shape != shape:
                raise leaf.misshapen(values, shape)
            leaf.write(values.reshape(len(out), -1), out[:, where])

    def _plan(self, space: Any, path: str, keys: tuple[Any, ...]) -> None:
        here = path or "observation"
        if isinstance(space, spaces.Dict):
            for key, child in space.spaces.items():
                self._plan(child, f"{path}/{key}" if path else str(key), (*keys, key))
        elif isinstance(space, spaces.Tuple):
            for index, child in enumerate(space.spaces):
                self._plan(child, f"{here}[{index}]", (*keys, index))
        elif isinstance(space, spaces.Discrete):
            self._categories(here, keys, space, [space.n], [space.start])
        elif isinstance(space, spaces.MultiDiscrete):
            self._categories(here, keys, space, space.nvec.ravel(), space.start.ravel())
        elif isinstance(space, spaces.Box | spaces.MultiBinary):
            self._leaves.append(of_box(here, keys, space))
        else:
            raise SpaceError(
                f"the space at {here!r} cannot be observed as a vector",
                got=space,
                allowed="Box, Discrete, MultiDiscrete, MultiBinary, Tuple, Dict, in any nesting",
                fix="Wrap the environment so that this part of its observation is one of those.",
            )

    def _categories(
        self, path: str, keys: tuple[Any, ...], space: spaces.Space[Any], counts: Any, starts: Any
    ) -> None:
        numbers = np.asarray(counts, dtype=np.int64)
        if (options := sum(map(int, numbers))) > MAX_OPTIONS:
            raise SpaceError(
                f"the space at {path!r} has too many options to be one number for each",
                got=f"{options:,}",
                allowed=f"up to {MAX_OPTIONS:,}",
                fix="Wrap the environment so that it is seen as numbers: a Box.",
            )
        shape, kind, size = tuple(space.shape or ()), np.dtype(space.dtype), int(numbers.sum())
        self._leaves.append(
            Categories(
                path, keys, shape, size, True, kind, counts=numbers, starts=np.asarray(starts)
            )
        )
