"""What collecting data takes beside acting, where the environment is compiled too.

None of this has a definition in torch: other environments are stepped from Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from numpy.typing import NDArray
from torch import Tensor

from headwise.ops.buffers import Buffer
from headwise.ops.core import core

Array: TypeAlias = NDArray[Any]


def write_rows(pairs: Sequence[tuple[Array, Array]], cursor: Buffer | None = None) -> None:
    """Copies what each source (P, ...) holds by then to its place.

    Args:
        pairs: Sources and places, of any type.
        cursor: The members' next row, the bits of an int64 (P, 1, 1, 2), which moves: then places
            are (P, T, ...), and nothing is written beyond the end. Without it they are (P, ...).
    """
    sources, places = [x for x, _ in pairs], [x for _, x in pairs]
    core.write_rows(sources, places, None if cursor is None else cursor.core)


def to_heads(
    unit: Buffer,
    *,
    action: Array,
    heads: Array,
    source: Sequence[int],
    joint: Tensor | None = None,
    units: Mapping[int, Tensor] | None = None,
) -> None:
    """Actions of a learner in the order of the spec, and as an environment takes them.

    Args:
        unit: Actions of the learner, (P, 1, E, heads of its own).
        action: The same in the order of the spec, (P, E, H); is written.
        heads: The same as the environment takes them, without NaN, (P, E, H); is written.
        source: Which head of the learner each head is.
        joint: The options of all joint actions (J, H), where the learner has one head of those.
        units: What the options of a head stand for, by head, where the environment has a range.
    """
    units = units or {}
    counts = [len(units.get(h, ())) for h in range(len(source))]
    table = Buffer(1, len(source), max(counts)) if units else None
    for h, values in units.items():
        assert table is not None
        table.tensor[0, 0, h, : len(values)] = values
    rows = None if joint is None else Buffer(1, *joint.shape)
    if rows is not None and joint is not None:
        rows.write(joint[None, None])
    core.to_heads(
        unit.core, action, heads, list(source), rows and rows.core, table and table.core, counts
    )


def step_env(port: object, heads: Array) -> None:
    """One step of a compiled environment with actions (P, E, H), for all members at once."""
    core.step_env(port, heads)


def time_passes(watch: Buffer, *, stops: bool) -> None:
    """Starts or stops a stopwatch of each member, three int64 in the bits (P, 1, 1, 6).

    When it was started, the nanoseconds so far, and how often it was stopped.
    """
    core.time_passes(watch.core, stops)
