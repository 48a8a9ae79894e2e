"""Fixed scenarios: parts of the state, given as reset options or set by hand.

Whatever `get_state()` shows may be given back: at the top level of the options, or under "state".
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwise.envs.native.engine import Engine
from headwise.errors import EnvError

Scenario: TypeAlias = dict[str, NDArray[np.float64]]
"""Parts of the state by name, each with one row for each slot."""

LARGEST = 1e9
"""No part of a state comes near it; beyond it, whole numbers would not fit the engine's."""


def scenario_of(engine: Engine, options: object, also: Iterable[str] = ()) -> Scenario:
    """The parts of the state that reset options fix; other option names allowed are in `also`."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise EnvError(f"{engine.name}: reset options are no dict", got=options)
    given = {name: part for name, part in options.items() if name != "state"}
    whole = options.get("state", {})
    if not isinstance(whole, Mapping):
        raise EnvError(
            f"{engine.name}: the option 'state' is no dict",
            got=whole,
            allowed="what get_state() returns, or a part of it",
        )
    also = tuple(also)
    shapes = {name: part.shape for name, part in engine.state(0).items()}
    for names, extra in ((given, ("state", *also)), (whole, ())):
        for name in names:
            if name not in shapes and name not in extra:
                raise _unknown_option(engine.name, name, (*shapes, *extra))
    parts = {**whole, **{name: part for name, part in given.items() if name not in also}}
    return {name: _rows(engine, name, part, shapes[name]) for name, part in parts.items()}


def stage_scenario(engine: Engine, scenario: Scenario, slots: Iterable[int]) -> None:
    """Sets parts of the state of some slots; an impossible one is found half-way, so roll back."""
    for slot in slots:
        engine.set_state(slot, {name: rows[slot] for name, rows in scenario.items()})
        now = engine.state(slot)
        for name, rows in scenario.items():
            # The engine may keep a number as float32, but 0.5 of an option is no option.
            same = (now[name] == rows[slot]) | (now[name] == rows[slot].astype(np.float32))
            if not same.all():
                raise EnvError(
                    f"{engine.name}: impossible state for slot {slot} at {name!r}",
                    got=rows[slot].tolist(),
                    allowed="whole numbers",
                )


@contextmanager
def unchanged_on_error(engine: Engine) -> Iterator[None]:
    """Puts every slot back to where it was if something goes wrong inside."""
    before = engine.snapshot()
    try:
        yield
    except BaseException:
        engine.restore(before)
        raise


def _rows(engine: Engine, name: str, part: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """A part of the state for every slot: as given for each, or the same for all."""
    where = f"{engine.name}: the state at {name!r}"
    try:
        values = np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError):
        raise EnvError(f"{where} is no array of numbers", got=part) from None
    rows = (engine.num_envs, *shape)
    if values.shape not in (shape, rows):
        raise EnvError(
            f"{where} has another shape",
            got=values.shape,
            allowed=f"{shape}, or {rows} with a row for each slot",
        )
    values = np.broadcast_to(values, rows)
    good = np.abs(values) <= LARGEST
    if not good.all():
        index = tuple(np.argwhere(~good)[0])
        raise EnvError(
            f"{where} is impossible for slot {index[0]}",
            got=values[index],
            allowed="finite numbers",
        )
    return values


def _unknown_option(env: str, name: object, known: tuple[str, ...]) -> EnvError:
    close = difflib.get_close_matches(str(name), known, n=1)
    return EnvError(
        f"{env}: unknown reset option",
        got=repr(name),
        allowed=", ".join(known),
        fix=f"Did you mean {close[0]!r}?" if close else None,
    )
