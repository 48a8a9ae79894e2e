"""Which options may be chosen: masks in every form that people give them, as one array.

The one array is boolean, (..., H, K): a row for each head, padded to the largest number of options.
Options that do not exist are False; the row of a Range is True throughout. Below them come the rows
of the tables that an environment gives (`ActionSpec.given`), the options of their head each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from headwise.errors import EnvError
from headwise.spaces import ActionSpec
from headwise.spaces.convert import free_elements
from headwise.spaces.links import GivenTable

Legal: TypeAlias = NDArray[np.bool_]

MASK = "action_mask"
"""The key of a mask in an info or an observation."""
MASK_METHOD = "action_masks"
"""The method of an environment that returns its mask."""


class MaskReader:
    """Reads masks for an action space, or for the spaces of a team by agent.

    A mask may be one flat array over the options of all Choice heads, an array padded to (H, K), or
    built like the action: a dict for a Dict, a tuple for a Tuple, one array for each element of a
    MultiDiscrete, as Gymnasium's `sample(mask)` takes it. The same holds for each part. A part that
    is None or missing has no illegal options. The padding of a smaller head must be False. In the
    place of a head whose options depend on others there may be a table: `given("verb", table)`, or
    the table alone.

    Args:
        space: The action space, or the action spaces by agent.
        spec: Its heads.
    """

    def __init__(
        self, space: spaces.Space[Any] | Mapping[str, spaces.Space[Any]], spec: ActionSpec
    ) -> None:
        self.all_legal: Legal = spec.full_mask
        """What is legal without a mask, (H, K), and the rows of tables below."""
        self._tables = _tables(spec)
        self._root = _plan(space, spec, 0, "the action", self._tables)
        self._heads, self._ranges = spec.num_heads, ~spec.is_choice[:, None]
        beyond = np.zeros_like(self.all_legal[spec.num_heads :])
        self._flat = np.concatenate([spec.option_mask, beyond]).reshape(-1)

    def read(self, mask: Any) -> Legal:
        """The mask of one action, (H, K)."""
        out = self.all_legal.copy()
        self._root.fill(mask, out)
        return out

    def read_batch(self, masks: Any, present: Legal, out: Legal) -> None:
        """Writes the masks of N actions, an array or a sequence of N, into `out` (N, H, K).

        Where `present` (N,) is False there is no mask, and every option is legal.
        """
        out[...] = self.all_legal
        array = _as_array(masks)
        if array is not None and array.shape == (len(out), self._root.total):
            values = _truth(array, "the action")
            out.reshape(len(out), -1)[:, self._flat] = values | ~present[:, None]
            return
        heads = out[:, : self._heads]
        if array is not None and array.shape == heads.shape:
            values = _truth(array, "the action") | self._ranges | ~present[:, None, None]
            if not (values & ~self.all_legal[: self._heads] & present[:, None, None]).any():
                heads &= values
                return
        for slot in np.flatnonzero(present):
            try:
                self._root.fill(masks[slot], out[slot])
            except EnvError as error:
                raise EnvError(f"number {slot} of {len(out)} masks: {error}") from error


@dataclass(frozen=True)
class _Place:
    """A place in the action space: which heads belong to it, and what it is made of."""

    path: str
    rows: slice
    exists: Legal
    """Which of the padded options of its heads exist, (h, k)."""
    parts: dict[Any, _Place] | None = None
    """What it is made of: by key for a Dict or a team, by number for the others."""
    by_key: bool = False
    shape: tuple[int, ...] | None = None
    """The shape of a MultiBinary, whose masks may also say 0, 1 or 2 for both."""
    names: tuple[str, ...] = ()
    """What its heads are called."""
    tables: Mapping[int, _Table] = field(default_factory=dict)
    """The tables of all heads that have some."""
    total: int = field(init=False)
    """The number of options of all its heads."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", int(self.exists.sum()))

    def fill(self, mask: Any, out: Legal) -> None:
        """Writes a mask into the rows of `out` (H, K) that belong here."""
        if mask is None:
            return
        rows = out[self.rows, : self.exists.shape[1]]
        array = _as_array(mask)
        table = self.tables.get(self.rows.start) if len(self.names) == 1 else None
        if isinstance(mask, GivenTable):
            self._check_table(mask, table)
            mask = array = mask.table
        if array is not None and table is not None and array.shape == table.shape:
            table.rows_of(out)[...] = _truth(array, self.path).reshape(-1, table.shape[-1])
        elif array is not None and array.shape == (self.total,):
            rows[self.exists] = _truth(array, self.path)
        elif array is not None and array.shape == self.exists.shape:
            truth = _truth(array, self.path)
            self._check_padding(truth)
            rows[self.exists] = truth[self.exists]
        elif array is not None and self.shape is not None and array.shape == self.shape:
            self._fill_binary(array, rows)
        else:
            self._fill_parts(mask, out)

    def _check_table(self, mask: GivenTable, table: _Table | None) -> None:
        """Refuses an unexpected table, by other heads, or of the wrong shape."""
        by = mask.heads[0] if len(mask.heads) == 1 else mask.heads
        if table is None or mask.heads != table.parents:
            name = self.names[0] if len(self.names) == 1 else None
            raise EnvError(
                f"the mask of {self.path} is a table by {by!r}, of which the agent was not told",
                got="no table for it" if table is None else f"a table by {table.parents}",
                fix="There is no single head." if name is None else
                f"Say constraints=[hw.Given(**{{{name!r}: {by!r}}})].",
            )  # fmt: skip
        if mask.table.shape != table.shape:
            raise EnvError(
                f"the table of {self.path} has the wrong shape",
                got=mask.table.shape,
                allowed=f"{table.shape}: options of {', '.join(table.parents)}, then its own",
            )

    def _check_padding(self, truth: Legal) -> None:
        """Refuses truths beyond the options of a head; the rows of Ranges are not looked at."""
        beyond = truth & ~self.exists & self.exists.any(-1, keepdims=True)
        if beyond.any():
            row, option = map(int, np.argwhere(beyond)[0])
            raise EnvError(
                f"the mask of {self.path} allows an option that head {self.names[row]!r} lacks",
                got=f"True for option {option}",
                allowed=f"options from 0 to {self.exists[row].sum() - 1}",
                fix="A row is a head and a column an option: pad the rows of smaller heads with "
                "False.",
            )

    def _fill_binary(self, array: NDArray[Any], rows: Legal) -> None:
        if not np.isin(array, (0, 1, 2)).all():
            raise self._wrong(array)
        rows[:, 0] = array.reshape(-1) != 1
        rows[:, 1] = array.reshape(-1) != 0

    def _fill_parts(self, mask: Any, out: Legal) -> None:
        parts = self.parts
        if parts is None:
            raise self._wrong(mask)
        if self.by_key:
            if not isinstance(mask, Mapping) or not set(mask) <= set(parts):
                raise self._wrong(mask)
            for key, part in mask.items():
                parts[key].fill(part, out)
        else:
            fits = isinstance(mask, Sequence | np.ndarray) and not isinstance(mask, str | bytes)
            if not fits or len(mask) != len(parts):
                raise self._wrong(mask)
            for part, place in zip(mask, parts.values(), strict=True):
                place.fill(part, out)

    def _wrong(self, mask: Any) -> EnvError:
        heads, options = self.exists.shape
        forms = [f"{self.total} truths, one for each option", f"an array ({heads}, {options})"]
        if not self.total:
            forms = ["None: it has no options"]
        elif self.by_key and self.parts is not None:
            forms.append(f"a dict with keys out of {list(self.parts)}")
        elif self.parts is not None:
            forms.append(f"a tuple of {len(self.parts)} masks")
        array = _as_array(mask)
        return EnvError(
            f"the mask of {self.path} does not fit",
            got=mask if array is None else f"an array of shape {array.shape}",
            allowed=", or ".join(forms),
        )


def _plan(
    space: spaces.Space[Any] | Mapping[str, spaces.Space[Any]],
    spec: ActionSpec,
    first: int,
    path: str,
    tables: Mapping[int, _Table],
) -> _Place:
    """The place of a space whose first head has that number; the order is ActionCodec's."""
    parts: dict[Any, _Place] | None = None
    by_key, row = False, first
    if isinstance(space, spaces.Dict | Mapping):
        children = space.spaces if isinstance(space, spaces.Dict) else space
        parts, by_key = {}, True
        for key, child in children.items():
            parts[key] = _plan(child, spec, row, f"{path} at {key!r}", tables)
            row = parts[key].rows.stop
    elif isinstance(space, spaces.Tuple | spaces.OneOf):
        row += isinstance(space, spaces.OneOf)  # the head that chooses among them
        parts = {}
        for number, child in enumerate(space.spaces):
            parts[number] = _plan(child, spec, row, f"{path} at [{number}]", tables)
            row = parts[number].rows.stop
    else:
        heads = free_elements(space)
        if not heads.all():  # of reals, which have no options
            rows = slice(first, first + int(heads.sum()))
            return _Place(path, rows, _existing(spec, rows), names=spec.names[rows])
        binary = isinstance(space, spaces.MultiBinary)
        return _elements(heads.shape, spec, first, path, tables, binary=binary)
    rows = slice(first, row)
    return _Place(path, rows, _existing(spec, rows), parts, by_key, names=spec.names[rows])


def _elements(
    shape: tuple[int, ...],
    spec: ActionSpec,
    first: int,
    path: str,
    tables: Mapping[int, _Table],
    *,
    binary: bool,
) -> _Place:
    """The place of an array, nested as the array is: one mask for each element."""
    rows = slice(first, first + math.prod(shape))
    exists = _existing(spec, rows)
    if not shape or not exists.any():
        return _Place(path, rows, exists, names=spec.names[rows], tables=tables)
    each = math.prod(shape[1:])
    parts = {
        number: _elements(
            shape[1:], spec, first + number * each, f"{path} at [{number}]", tables, binary=binary
        )
        for number in range(shape[0])
    }
    shape_of_bits = shape if binary else None
    return _Place(path, rows, exists, parts, shape=shape_of_bits, names=spec.names[rows])


@dataclass(frozen=True)
class _Table:
    """A table that an environment gives: where its rows are in a mask, and its shape."""

    parents: tuple[str, ...]
    first: int
    shape: tuple[int, ...]

    def rows_of(self, out: Legal) -> Legal:
        """The rows of a mask (H, K) that it fills."""
        return out[self.first : self.first + math.prod(self.shape[:-1]), : self.shape[-1]]


def _tables(spec: ActionSpec) -> dict[int, _Table]:
    """The tables that are given, by the head whose options they say."""
    tables, first = {}, spec.num_heads
    for link in spec.given:
        names = tuple(spec.names[p] for p in link.parents)
        shape = tuple(spec.cardinalities[h] for h in (*link.parents, link.child))
        tables[link.child] = _Table(names, first, shape)
        first += math.prod(shape[:-1])
    return tables


def _existing(spec: ActionSpec, rows: slice) -> Legal:
    return spec.option_mask[rows, : max(spec.cardinalities[rows], default=0)]


def _as_array(mask: Any) -> NDArray[Any] | None:
    """The mask as an array of numbers, or None if it is no such thing."""
    if isinstance(mask, Mapping):
        return None
    try:
        array = np.asarray(mask)
    except ValueError:  # a ragged list
        return None
    return array if array.dtype.kind in "biuf" else None


def _truth(array: NDArray[Any], path: str) -> Legal:
    truth = array.astype(np.bool_)
    if array.dtype != np.bool_ and not (array == truth).all():
        raise EnvError(
            f"the mask of {path} has something else than truths",
            got=array[array != truth].reshape(-1)[0],
            allowed="0 or False for illegal, 1 or True for legal",
        )
    return truth
