"""Gymnasium actions on their way into an engine's arrays: the space, and the writing of it.

What is checked here is structure, shape and type. Whether a value is in range is the engine's to
say, for all slots at once and before anything moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from headwise.envs.native.engine import Engine
from headwise.envs.native.info import EVERY_HEAD
from headwise.errors import ConfigError, SpaceError
from headwise.registry import unknown
from headwise.spaces import ActionSpec, Choice, Condition, Range

_INT32 = np.iinfo(np.int32)


class ActionForm(Protocol):
    """How an action looks from outside."""

    space: spaces.Space[Any]
    """The space of one slot's action."""
    spec: ActionSpec

    def write(self, action: Any) -> None:
        """Puts an action (or a batch of them) where the engine's next step reads it."""


def action_form(engine: Engine, form: str, *, batched: bool) -> ActionForm:
    """The form of that name: "heads", or "oneof" for parameterized actions."""
    if form == "heads":
        return HeadsForm(engine, batched=batched)
    if form == "oneof":
        return OneOfForm(engine, batched=batched)
    raise unknown("action form", form, ("heads", "oneof"))


class HeadsForm:
    """Options as a (Multi)Discrete, numbers as a Box in the environment's units, or a pair of both.

    Args:
        engine: Whose arrays are written.
        batched: Whether actions come with a leading axis of slots.
        choices: Which of the choice heads belong to this action.
        ranges: Which of the range heads.
        who: Whose action it is, for messages.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        batched: bool,
        choices: slice = EVERY_HEAD,
        ranges: slice = EVERY_HEAD,
        who: str = "the action",
    ) -> None:
        spec, options = engine.spec, engine.spec.num_choices
        columns = [*range(options)[choices], *range(options, spec.num_heads)[ranges]]
        self.spec = ActionSpec(
            tuple(spec.names[column] for column in columns),
            tuple(spec.heads[column] for column in columns),
        )
        where = f"{engine.name}: {who}"
        self._where = where
        self._parts: list[_Part] = []
        counts = [head.n for head in self.spec.heads if isinstance(head, Choice)]
        bounds = [(head.low, head.high) for head in self.spec.heads if isinstance(head, Range)]
        parts: list[spaces.Space[Any]] = []
        if counts:
            alone = len(counts) == 1
            parts.append(spaces.Discrete(counts[0]) if alone else spaces.MultiDiscrete(counts))
            target = engine.choices[:, choices]
            target = target[:, 0] if alone else target
            self._parts.append(_Part(target if batched else target[0, ...], "iu", where))
        if bounds:
            low, high = np.array(bounds, dtype=np.float32).T
            parts.append(spaces.Box(low, high, dtype=np.float32))
            target = engine.ranges[:, ranges]
            self._parts.append(_Part(target if batched else target[0], "fiu", where))
        self.space = parts[0] if len(parts) == 1 else spaces.Tuple(parts)

    def write(self, action: Any) -> None:
        """Puts an action (or a batch of them) where the engine's next step reads it."""
        if len(self._parts) == 1:
            self._parts[0].write(action)
            return
        if not isinstance(action, tuple | list) or len(action) != 2:
            raise SpaceError(
                f"{self._where} has the wrong structure",
                got=action,
                allowed="(discrete, continuous)",
            )
        self._parts[0].write(action[0])
        self._parts[1].write(action[1])


class OneOfForm:
    """A parameterized action: which kind, and the one number that this kind takes.

    Made for Platform, whose action is a run, a hop or a leap with a strength of its own.
    """

    def __init__(self, engine: Engine, *, batched: bool) -> None:
        spec = engine.spec
        if spec.num_choices != 1 or spec.cardinalities[0] != spec.num_ranges:
            raise ConfigError(
                f"{engine.name}: the action is not one discrete head with its own parameter",
                got=str(spec),
                allowed='action_form="heads"',
                fix="Platform is, in its hybrid view with three parameter heads.",
            )
        self._name = engine.name
        self._low = [head.low for head in spec.heads if isinstance(head, Range)]
        self._choices, self._ranges, self._batched = engine.choices, engine.ranges, batched
        bounds = zip(self._low, spec.high[1:].tolist(), strict=True)
        self.space: spaces.Space[Any] = spaces.OneOf(
            [spaces.Box(low, high, (1,)) for low, high in bounds]
        )
        conditions = (None, *(Condition(0, kind, kind + 1) for kind in range(spec.num_ranges)))
        self.spec = ActionSpec(spec.names, spec.heads, conditions)

    def write(self, action: Any) -> None:
        """Puts an action (or a batch of them) where the engine's next step reads it."""
        actions = action if self._batched else (action,)
        if not isinstance(actions, Sequence) or len(actions) != len(self._choices):
            raise SpaceError(
                f"{self._name}: the actions have the wrong structure",
                got=actions,
                allowed=f"{len(self._choices)} pairs (kind, number)",
            )
        self._ranges[...] = self._low
        for slot, pair in enumerate(actions):
            where = f"{self._name}: the action of slot {slot}"
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise SpaceError(
                    f"{where} has the wrong structure", got=pair, allowed="(kind, number)"
                )
            _Part(self._choices[slot, 0, ...], "iu", where).write(pair[0])
            kind = int(self._choices[slot, 0])
            if 0 <= kind < len(self._low):  # any other kind is left for the engine to refuse
                _Part(self._ranges[slot, kind : kind + 1], "fiu", where).write(pair[1])


class _Part:
    """One array of an action: what it must look like, and where it goes."""

    __slots__ = ("_kinds", "_target", "_where")

    def __init__(self, target: NDArray[Any], kinds: str, where: str) -> None:
        self._target, self._kinds, self._where = target, kinds, where

    def write(self, value: Any) -> None:
        target = self._target
        try:
            array = np.asarray(value)
        except ValueError:  # a ragged list
            array = np.empty(0, dtype=object)
        if array.dtype.kind not in self._kinds:
            raise SpaceError(
                f"{self._where} is of the wrong type",
                got=f"dtype {array.dtype}: {value!r}",
                allowed="whole numbers" if self._kinds == "iu" else "real numbers",
            )
        if array.shape != target.shape:
            raise SpaceError(
                f"{self._where} has the wrong shape",
                got=f"shape {array.shape}",
                allowed=f"shape {target.shape}",
            )
        if array.dtype == target.dtype:
            target[...] = array
        elif self._kinds == "iu" and array.dtype.itemsize >= target.dtype.itemsize:
            # What does not fit into int32 must not come out of it as another option: it is cut to
            # the nearest number that does, which the engine refuses.
            array = array if array.dtype.kind == "u" else np.maximum(array, _INT32.min)
            np.minimum(array, _INT32.max, out=target, casting="unsafe")
        else:
            with np.errstate(over="ignore"):  # too large for float32 is infinite, and refused
                np.copyto(target, array, casting="unsafe")
