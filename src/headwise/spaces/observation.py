"""Gymnasium observation spaces, however nested, as one flat float32 vector with named slices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from headwise.errors import SpaceError
from headwise.spaces.action import MAX_OPTIONS, as_array
from headwise.spaces.prior import ObsPrior

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class ObsLeaf:
    """An array at a place of an observation space."""

    path: str
    shape: tuple[int, ...]
    counts: tuple[int, ...] | None = None
    """For categories the number of options of each element; None for numbers."""
    starts: tuple[int, ...] = ()
    """For categories the first option of each element."""
    is_packed: bool = False
    """Whether a row holds its bytes as they are, four to a word; else one float32 a number."""


@dataclass(frozen=True)
class ObsSpec:
    """The layout of an observation as a row of float32 words: which part came from where.

    A leaf of numbers fills a word for each, a category one for each option. A packed leaf fills its
    words with bytes: nobody but `nets/preprocess.py` reads them as numbers.
    """

    size: int
    slices: dict[str, slice]
    """The part of the vector that each leaf of the space fills, by its path."""
    is_bytes: bool = False
    """Whether the spaces promise nothing but whole numbers from 0 to 255, as images are."""
    prior: ObsPrior | None = field(default=None, compare=False, repr=False)
    """How `normalise_obs="auto"` begins; None, where nothing is scaled unless somebody says so."""
    leaves: tuple[ObsLeaf, ...] = field(default=(), compare=False, repr=False)
    """What the slices are made of; empty for a plain vector."""

    @classmethod
    def flat(cls, size: int, name: str = "observation") -> ObsSpec:
        """An observation that is a plain vector already."""
        return cls(size, {name: slice(0, size)})


class ObsCodec:
    """Flattens observations of a Gymnasium space: numbers as they are, categories one-hot.

    Box, Discrete, MultiDiscrete, MultiBinary, Tuple and Dict are understood, in any nesting.

    Example:
        >>> from gymnasium.spaces import Box, Dict, Discrete
        >>> codec = ObsCodec(Dict(gear=Discrete(3), speed=Box(0, 9, (1,))))
        >>> codec.flatten({"gear": 1, "speed": np.array([4.5])})
        array([0. , 1. , 0. , 4.5], dtype=float32)
        >>> codec.spec.slices
        {'gear': slice(0, 3, None), 'speed': slice(3, 4, None)}
    """

    def __init__(self, space: spaces.Space[Any]) -> None:
        self._leaves: list[_Numbers] = []
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

    def _finish(self, space: object) -> None:
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
        self.spec = ObsSpec(start, slices, only_bytes, prior, self.leaves)

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
            values = found[leaf.path] = np.array([leaf.pick(obs) for obs in many])
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
            small = np.dtype(space.dtype) in (np.uint8, np.bool_) or not isinstance(
                space, spaces.Box
            )
            size = int(np.prod(space.shape))
            kind = np.dtype(space.dtype)
            bounds = (space.low, space.high) if isinstance(space, spaces.Box) else None
            self._leaves.append(_Numbers(here, keys, space.shape, size, small, kind, bounds))
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
            _Categories(
                path, keys, shape, size, True, kind, counts=numbers, starts=np.asarray(starts)
            )
        )


def absent(dtype: np.dtype[Any]) -> int:
    """The number of a category that is not there, as that of an agent who has left."""
    return int(np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max)


@dataclass
class _Numbers:
    """A leaf whose numbers are copied as they are."""

    path: str
    keys: tuple[Any, ...]
    shape: tuple[int, ...]
    size: int
    is_bytes: bool
    dtype: np.dtype[Any]
    bounds: tuple[NDArray[Any], NDArray[Any]] | None = None
    """Of a Box."""
    may_be_absent: bool = False
    """Whether it belongs to an agent, who may have left."""
    kinds: ClassVar[str] = "iubf"

    def pick(self, obs: Any) -> NDArray[Any]:
        """What stands at this place of an observation, as an array."""
        for key in self.keys:
            try:
                obs = obs[key]
            except (KeyError, IndexError, TypeError):
                raise SpaceError(
                    f"the observation lacks {self.path!r}", got=obs, allowed=f"something at {key!r}"
                ) from None
        values = as_array(obs)
        if values.dtype.kind not in self.kinds:
            raise SpaceError(
                f"the observation at {self.path!r} is of the wrong type",
                got=obs,
                allowed="numbers" if "f" in self.kinds else "whole numbers",
            )
        return values

    def misshapen(self, values: NDArray[Any], allowed: tuple[int, ...]) -> SpaceError:
        """What is said of an array of another shape."""
        return SpaceError(
            f"the observation at {self.path!r} has the wrong shape",
            got=values.shape,
            allowed=str(allowed),
        )

    def write(
        self,
        values: NDArray[Any],
        out: NDArray[np.float32],
        where: Callable[[int], str] | None = None,
    ) -> None:
        """Write `(B, elements)` into `out` `(B, size)`."""
        if values.dtype.kind != "f" or values.dtype.itemsize <= 4:
            out[...] = values
            return
        try:
            with np.errstate(over="raise"):
                out[...] = values
        except FloatingPointError:
            large = np.isfinite(values) & (np.abs(values) > _LARGEST)
            row, element = np.argwhere(large)[0]
            raise SpaceError(
                f"{self._at(row, len(values), where)} is too large for float32",
                got=values[row, element],
                allowed=f"numbers up to {_LARGEST:.3g}",
            ) from None

    def _at(self, row: int, rows: int, where: Callable[[int], str] | None) -> str:
        of_many = f" of row {row}" if rows > 1 and where is None else ""
        before = "" if where is None else f"{where(int(row))}: "
        return f"{before}the observation at {self.path!r}{of_many}"

    def prior(self) -> ObsPrior:
        """What is known of the size of its numbers: switches stay as they are, bytes are known."""
        if self.bounds is None or self.dtype == np.bool_:
            return ObsPrior.fixed(self.size)
        low, high = self.bounds
        if self.dtype == np.uint8 and self.size and not low.any() and (high == 255).all():
            return ObsPrior.fixed(self.size, 255.0)
        return ObsPrior.of(low, high)

    def described(self) -> ObsLeaf:
        """What the outside may know of it."""
        return ObsLeaf(self.path, self.shape)


@dataclass
class _Categories(_Numbers):
    """A leaf whose elements become one-hot."""

    counts: NDArray[np.int64] = field(kw_only=True)
    starts: NDArray[np.int64] = field(kw_only=True)
    kinds: ClassVar[str] = "iub"

    def __post_init__(self) -> None:
        self._first = np.cumsum(self.counts) - self.counts
        self._rows = np.arange(1)[:, None]

    def write(
        self,
        values: NDArray[Any],
        out: NDArray[np.float32],
        where: Callable[[int], str] | None = None,
    ) -> None:
        """Write `(B, elements)` one-hot into `out` `(B, size)`."""
        options = values.astype(np.int64) - self.starts
        good = (options >= 0) & (options < self.counts)
        out[...] = 0.0
        if len(self._rows) != len(out):
            self._rows = np.arange(len(out))[:, None]
        if good.all():
            out[self._rows, options + self._first] = 1.0
            return
        wrong = ~good & ((values != absent(values.dtype)) if self.may_be_absent else True)
        if wrong.any():
            row, element = np.argwhere(wrong)[0]
            low = int(self.starts[element])
            raise SpaceError(
                f"{self._at(row, 1, where)} is out of range",
                got=values[row, element],
                allowed=f"{low} to {low + int(self.counts[element]) - 1}",
            )
        rows, elements = np.nonzero(good)
        out[rows, (options + self._first)[rows, elements]] = 1.0

    def described(self) -> ObsLeaf:
        """What the outside may know of it."""
        counts, starts = (tuple(map(int, np.ravel(x))) for x in (self.counts, self.starts))
        return ObsLeaf(self.path, self.shape, counts, starts)
