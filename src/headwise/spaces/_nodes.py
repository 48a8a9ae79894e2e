"""The tree that a nested action space becomes: one node for each place in it.

A *batch* is Gymnasium's batched form of what belongs at a place: an array for a leaf, a dict or
tuple of batches for a branch, and a tuple of samples for a OneOf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headwise.errors import SpaceError
from headwise.spaces.action import FloatArray, as_array


class Node(Protocol):
    """A place in the space."""

    def decode(self, heads: FloatArray) -> Any:
        """Head vectors (B, H) as a batch."""

    def encode(self, batch: Any, out: FloatArray) -> None:
        """Write a batch of B into the columns of `out` (B, H) that belong to this node."""

    def stack(self, samples: Sequence[Any]) -> Any:
        """Single actions as a batch."""

    def unstack(self, batch: Any, size: int) -> list[Any]:
        """A batch of `size` as single actions."""

    def length(self, batch: Any) -> int:
        """How many actions a batch holds."""

    def leaves(self) -> Iterator[ArrayNode]:
        """The arrays that an action is made of, in the order of the heads."""


@dataclass(frozen=True)
class ArrayNode:
    """A leaf whose samples are arrays (or scalars) of numbers."""

    path: str
    columns: slice
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    offset: FloatArray
    """What turns an option's number into the environment's: `start`, or the low of an int Box."""
    scalar: bool
    """Whether a sample is a numpy scalar (Discrete) rather than an array."""
    free: NDArray[np.bool_] | None = None
    """Which elements are heads, where some can have one value only; None means all."""

    @property
    def integral(self) -> bool:
        return self.dtype.kind in "iub"

    def decode(self, heads: FloatArray) -> NDArray[Any]:
        values = heads[:, self.columns]
        if self._is_shifted:
            values = values + self.offset
        if self.integral:
            values = np.rint(values)
        if self.free is not None:
            chosen = values
            values = np.tile(self.low.reshape(-1).astype(np.float64), (len(heads), 1))
            values[:, self.free] = chosen
        return values.astype(self.dtype).reshape(len(heads), *self.shape)

    @cached_property
    def _is_shifted(self) -> bool:
        return bool(self.offset.any())

    def encode(self, batch: Any, out: FloatArray) -> None:
        values = _as_array(batch, self.path)
        if values.shape != (len(out), *self.shape):
            raise SpaceError(
                f"the actions at {self.path!r} have the wrong shape",
                got=values.shape,
                allowed=str((len(out), *self.shape)),
            )
        if values.dtype.kind not in ("iub" if self.integral else "iuf"):
            raise SpaceError(
                f"the action at {self.path!r} is of the wrong type",
                got=f"dtype {values.dtype}",
                allowed="whole numbers" if self.integral else "real numbers",
            )
        good = (self.low <= values) & (values <= self.high)
        if not good.all():
            index = tuple(map(int, np.argwhere(~good)[0]))
            element = index[1:]
            raise SpaceError(
                f"the action at {indexed(self.path, element)!r} is out of range",
                got=values[index],
                allowed=f"{self.low[element]:g} to {self.high[element]:g}",
            )
        values = values.reshape(len(out), -1)
        out[:, self.columns] = (values if self.free is None else values[:, self.free]) - self.offset

    def stack(self, samples: Sequence[Any]) -> NDArray[Any]:
        arrays = [_as_array(sample, self.path) for sample in samples]
        for array in arrays:
            if array.shape != self.shape:
                raise SpaceError(
                    f"the action at {self.path!r} has the wrong shape",
                    got=array.shape,
                    allowed=str(self.shape),
                )
        return np.stack(arrays) if arrays else np.empty((0, *self.shape), self.dtype)

    def unstack(self, batch: NDArray[Any], size: int) -> list[Any]:
        assert len(batch) == size
        lone = not self.scalar and not self.shape
        return [np.asarray(sample) for sample in batch] if lone else list(batch)

    def length(self, batch: Any) -> int:
        values = _as_array(batch, self.path)
        if values.ndim == 0:
            raise SpaceError(f"the actions at {self.path!r} are not a batch", got=batch)
        return len(values)

    def leaves(self) -> Iterator[ArrayNode]:
        yield self


@dataclass(frozen=True)
class DictNode:
    """A Dict, or the agents of a parallel environment."""

    path: str
    children: list[tuple[Any, Node]]

    def decode(self, heads: FloatArray) -> dict[Any, Any]:
        return {key: child.decode(heads) for key, child in self.children}

    def encode(self, batch: Any, out: FloatArray) -> None:
        self._check(batch)
        for key, child in self.children:
            child.encode(batch[key], out)

    def stack(self, samples: Sequence[Any]) -> dict[Any, Any]:
        for sample in samples:
            self._check(sample)
        return {key: child.stack([s[key] for s in samples]) for key, child in self.children}

    def unstack(self, batch: dict[Any, Any], size: int) -> list[Any]:
        columns = [child.unstack(batch[key], size) for key, child in self.children]
        keys = [key for key, _ in self.children]
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]

    def length(self, batch: Any) -> int:
        self._check(batch)
        key, child = self.children[0]
        return child.length(batch[key])

    def leaves(self) -> Iterator[ArrayNode]:
        for _, child in self.children:
            yield from child.leaves()

    def _check(self, value: Any) -> None:
        keys = [key for key, _ in self.children]
        if not isinstance(value, Mapping) or set(value) != set(keys):
            got = f"keys {sorted(map(str, value))}" if isinstance(value, Mapping) else value
            raise SpaceError(
                f"the action at {self.path!r} has the wrong structure",
                got=got,
                allowed=f"a dict with keys {keys}",
            )


@dataclass(frozen=True)
class TupleNode:
    """A Tuple."""

    path: str
    children: list[Node]

    def decode(self, heads: FloatArray) -> tuple[Any, ...]:
        return tuple(child.decode(heads) for child in self.children)

    def encode(self, batch: Any, out: FloatArray) -> None:
        self._check(batch)
        for part, child in zip(batch, self.children, strict=True):
            child.encode(part, out)

    def stack(self, samples: Sequence[Any]) -> tuple[Any, ...]:
        for sample in samples:
            self._check(sample)
        return tuple(child.stack([s[i] for s in samples]) for i, child in enumerate(self.children))

    def unstack(self, batch: tuple[Any, ...], size: int) -> list[Any]:
        columns = [c.unstack(part, size) for part, c in zip(batch, self.children, strict=True)]
        return list(zip(*columns, strict=True))

    def length(self, batch: Any) -> int:
        self._check(batch)
        return self.children[0].length(batch[0])

    def leaves(self) -> Iterator[ArrayNode]:
        for child in self.children:
            yield from child.leaves()

    def _check(self, value: Any) -> None:
        if not isinstance(value, tuple | list) or len(value) != len(self.children):
            raise SpaceError(
                f"the action at {self.path!r} has the wrong structure",
                got=value,
                allowed=f"a tuple of {len(self.children)} parts",
            )


@dataclass(frozen=True)
class OneOfNode:
    """A OneOf: a Choice of the alternative, then the heads of every alternative."""

    path: str
    column: int
    children: list[Node]

    def decode(self, heads: FloatArray) -> tuple[tuple[np.int64, Any], ...]:
        chosen = heads[:, self.column].astype(np.int64)
        out: list[Any] = [None] * len(heads)
        for alternative, child in enumerate(self.children):
            (rows,) = np.nonzero(chosen == alternative)
            samples = child.unstack(child.decode(heads[rows]), len(rows)) if len(rows) else []
            for row, sample in zip(rows, samples, strict=True):
                out[row] = (np.int64(alternative), sample)
        return tuple(out)

    def encode(self, batch: Any, out: FloatArray) -> None:
        if self.length(batch) != len(out):
            raise SpaceError(
                f"the actions at {self.path!r} are not as many as elsewhere in the batch",
                got=len(batch),
                allowed=str(len(out)),
            )
        chosen = np.array([self._chosen(sample) for sample in batch], dtype=np.int64)
        out[:, self.column] = chosen
        for alternative, child in enumerate(self.children):
            (rows,) = np.nonzero(chosen == alternative)
            if len(rows):
                part = out[rows]
                child.encode(child.stack([batch[row][1] for row in rows]), part)
                out[rows] = part

    def stack(self, samples: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(samples)

    def unstack(self, batch: tuple[Any, ...], size: int) -> list[Any]:
        assert len(batch) == size
        return list(batch)

    def length(self, batch: Any) -> int:
        if not isinstance(batch, tuple | list):
            raise SpaceError(
                f"the actions at {self.path!r} are not a batch",
                got=batch,
                allowed="a tuple of (alternative, value) pairs",
            )
        return len(batch)

    def leaves(self) -> Iterator[ArrayNode]:
        yield ArrayNode(
            path=self.path,
            columns=slice(self.column, self.column + 1),
            shape=(),
            dtype=np.dtype(np.int64),
            low=np.zeros(()),
            high=np.asarray(len(self.children) - 1),
            offset=np.zeros(1),
            scalar=True,
        )
        for child in self.children:
            yield from child.leaves()

    def _chosen(self, sample: Any) -> int:
        if (
            isinstance(sample, tuple | list)
            and len(sample) == 2
            and isinstance(sample[0], int | np.integer)
            and 0 <= sample[0] < len(self.children)
        ):
            return int(sample[0])
        raise SpaceError(
            f"the action at {self.path!r} has the wrong structure",
            got=sample,
            allowed=f"(alternative, value) with an alternative from 0 to {len(self.children) - 1}",
        )


def indexed(path: str, element: tuple[int, ...]) -> str:
    """The path of one element of the array at `path`."""
    return f"{path}[{','.join(map(str, element))}]" if element else path


def _as_array(value: Any, path: str) -> NDArray[Any]:
    array = as_array(value)
    if array.dtype.kind not in "iubf":
        raise SpaceError(
            f"the action at {path!r} has the wrong structure",
            got=value,
            allowed="an array of numbers",
        )
    return array
