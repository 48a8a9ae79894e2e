"""How each kind of array in an observation is written as words of a row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from headwise.checks import all_true
from headwise.errors import SpaceError
from headwise.spaces.action import as_array
from headwise.spaces.prior import ObsPrior

_LARGEST = float(np.finfo(np.float32).max)
_THIN = 16
"""A table of bytes with a side shorter than that is no picture."""


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
    keys: tuple[Any, ...] = ()
    """The keys that lead to it; none where the observation is one array."""
    dtype: str = "float32"
    """Its type in the space."""
    low: float = -math.inf
    """The least number that the space allows anywhere in it."""
    high: float = math.inf
    """And the largest."""


def absent(dtype: np.dtype[Any]) -> int:
    """The number of a category that is not there, as that of an agent who has left."""
    return int(np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max)


@dataclass
class Numbers:
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
        low, high = -math.inf, math.inf
        if self.size and self.bounds is not None:
            low, high = float(np.min(self.bounds[0])), float(np.max(self.bounds[1]))
        return ObsLeaf(
            self.path, self.shape, keys=self.keys, dtype=self.dtype.name, low=low, high=high
        )


@dataclass
class Categories(Numbers):
    """A leaf whose elements become one-hot."""

    counts: NDArray[np.int64] = field(kw_only=True)
    starts: NDArray[np.int64] = field(kw_only=True)
    kinds: ClassVar[str] = "iub"

    def __post_init__(self) -> None:
        self._first = np.cumsum(self.counts) - self.counts
        self._rows = np.arange(1)[:, None]
        lone = len(self.counts) == 1
        self._numbers = self.starts + np.arange(self.size) if lone else None
        self._too_much = self.counts.astype(np.uint64)

    def write(
        self,
        values: NDArray[Any],
        out: NDArray[np.float32],
        where: Callable[[int], str] | None = None,
    ) -> None:
        """Write `(B, elements)` one-hot into `out` `(B, size)`."""
        if self._numbers is not None:
            np.equal(values, self._numbers, out=out)
            if np.count_nonzero(out) == len(out):
                return
        options = values.astype(np.int64) - self.starts
        good = options.view(np.uint64) < self._too_much  # as which those below 0 are huge
        out[...] = 0.0
        if len(self._rows) != len(out):
            self._rows = np.arange(len(out))[:, None]
        if all_true(good):
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
        return ObsLeaf(self.path, self.shape, counts, starts, keys=self.keys, dtype=self.dtype.name)


@dataclass
class Packed(Numbers):
    """A leaf whose bytes stay as they are, four to a word."""

    def write(
        self,
        values: NDArray[Any],
        out: NDArray[np.float32],
        where: Callable[[int], str] | None = None,
    ) -> None:
        """Write `(B, elements)` into the words `out` `(B, size)`."""
        if values.dtype != np.uint8:
            self._check(values, where)
        octets, count = out.view(np.uint8), values.shape[-1]
        np.copyto(octets[:, :count], values, casting="unsafe")
        octets[:, count:] = 0

    def _check(self, values: NDArray[Any], where: Callable[[int], str] | None) -> None:
        """Refuses numbers that are no bytes."""
        wrong = ~((values >= 0) & (values <= 255) & (values == np.rint(values)))
        if wrong.any():
            row = int(np.argwhere(wrong)[0][0])
            raise SpaceError(
                f"{self._at(row, len(values), where)} does not fit its space's type",
                got=f"{values[wrong][0]} ({values.dtype} that uint8 would change)",
                allowed="uint8: whole numbers from 0 to 255",
            )

    def prior(self) -> ObsPrior:
        """Its words are no numbers, and stay as they are."""
        return ObsPrior.fixed(self.size)

    def described(self) -> ObsLeaf:
        """What the outside may know of it."""
        return replace(super().described(), is_packed=True)


def of_box(path: str, keys: tuple[Any, ...], space: spaces.Box | spaces.MultiBinary) -> Numbers:
    """The leaf of a Box or a MultiBinary: pictures stay bytes, all else becomes numbers."""
    kind, size = np.dtype(space.dtype), math.prod(space.shape)
    if not isinstance(space, spaces.Box):
        return Numbers(path, keys, space.shape, size, True, kind)
    bounds = space.low, space.high
    if kind == np.uint8 and _is_picture(space):
        return Packed(path, keys, space.shape, -(-size // 4), True, kind, bounds)
    return Numbers(path, keys, space.shape, size, kind in (np.uint8, np.bool_), kind, bounds)


def _is_picture(space: spaces.Box) -> bool:
    """Whether bytes are a picture: 0 to 255, with a height, a width and maybe channels."""
    shape = space.shape
    if not (len(shape) == 3 or (len(shape) == 2 and min(shape) >= _THIN)) or 0 in shape:
        return False
    return not space.low.any() and bool((space.high == 255).all())
