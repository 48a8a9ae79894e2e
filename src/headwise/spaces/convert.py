"""Gymnasium action spaces, however nested, to heads and back.

A space becomes a tree of nodes once; after that every conversion is a walk over the tree with
vectorized numpy at each leaf, so its cost hardly depends on the number of actions in a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from headwise.errors import SpaceError
from headwise.spaces._nodes import ArrayNode, DictNode, Node, OneOfNode, TupleNode, indexed
from headwise.spaces.action import (
    ActionSpec,
    Choice,
    Condition,
    FloatArray,
    Head,
    Range,
    as_array,
)

Bounds = tuple[ArrayLike, ArrayLike]
ActionLeaf = ArrayNode
"""An array at a place of an action space: its path, its heads' columns, its shape and type."""

MAX_INTEGER_OPTIONS = 256
"""An integer Box element with at most this many values is a Choice; a wider one is a Range."""
UNBOUNDED = 1e6
"""A bound of a Box this far from 0 only says that there is none, as that of `finfo(...).max` does;
as a bound it would make every sensible action look like 0."""
EXACT = 2**53
"""Up to here a float64 holds every whole number."""


class ActionCodec:
    """Translates the actions of a Gymnasium space to head vectors and back, one or many at a time.

    Discrete, MultiDiscrete, MultiBinary, Box, Tuple, Dict and OneOf are understood, in any nesting.
    A head is named by its place in the space: `arm/joints[2]` is element 2 of the Box at
    `space["arm"]["joints"]`. A OneOf becomes a Choice of the alternative, and the heads of each
    alternative are in use only under their choice (`spec.conditions`).

    An integer Box element is a Choice if it has at most 256 values. A wider one is a Range, whose
    value is rounded to the nearest integer on the way to the environment. An element of reals whose
    bounds are the same is no head: it is filled in.

    Examples:
        >>> from gymnasium.spaces import Box, Dict, Discrete
        >>> codec = ActionCodec(Dict(grip=Discrete(3), joints=Box(-1, 1, (2,))))
        >>> codec.spec.names
        ('grip', 'joints[0]', 'joints[1]')
        >>> codec.to_env([2, 0.5, -1])
        {'grip': np.int64(2), 'joints': array([ 0.5, -1. ], dtype=float32)}

    Args:
        space: The action space.
        bounds: Bounds for Boxes that have none, or none nearer to 0 than a million, as
            `{path: (low, high)}`, for example `{"arm/joints": (-1, 1)}`; the path of a lone Box is
            `action`.
    """

    def __init__(
        self, space: spaces.Space[Any], *, bounds: Mapping[str, Bounds] | None = None
    ) -> None:
        self.space: spaces.Space[Any] | None = space
        self._plan({}, space, bounds)

    @classmethod
    def of_agents(
        cls,
        action_spaces: Mapping[str, spaces.Space[Any]],
        *,
        bounds: Mapping[str, Bounds] | None = None,
    ) -> ActionCodec:
        """One action of all agents of a PettingZoo parallel environment, in the order given.

        Environment actions are then dicts by agent, and head names begin with the agent:
        `agent_0/action`, `agent_1/aim[0]`. `codec.agents` gives the agent of each head.
        """
        codec = cls.__new__(cls)
        codec.space = None
        codec._plan(dict(action_spaces), None, bounds)
        return codec

    def _plan(
        self,
        agents: dict[str, spaces.Space[Any]],
        space: spaces.Space[Any] | None,
        bounds: Mapping[str, Bounds] | None,
    ) -> None:
        build = _Builder({} if bounds is None else bounds)
        self._root: Node
        if space is None:
            children = []
            self.agents: tuple[str, ...] = ()
            for agent, agent_space in agents.items():
                children.append((agent, build.node(agent_space, f"{agent}/", None)))
                self.agents += (agent,) * (len(build.heads) - len(self.agents))
            self._root = DictNode("the actions of all agents", children)
        else:
            self._root = build.node(space, "", None)
            self.agents = ()
        build.check_bounds()
        if not build.heads:
            raise SpaceError(
                "the action space has nothing to choose",
                got=space,
                fix="Give it at least one head.",
            )
        self.spec = ActionSpec(tuple(build.names), tuple(build.heads), tuple(build.conditions))

    @property
    def leaves(self) -> tuple[ActionLeaf, ...]:
        """The arrays that an action is made of, in the order of the heads.

        A OneOf has the number of its alternative, at its own path, then the leaves of all of them.
        """
        return tuple(self._root.leaves())

    def to_env(self, heads: ArrayLike) -> Any:
        """One head vector `(H,)` as an action of the environment."""
        values = self._checked(heads, 1)
        return self._root.unstack(self._root.decode(values[None]), 1)[0]

    def to_env_batch(self, heads: ArrayLike) -> Any:
        """Head vectors `(B, H)` as a batch in Gymnasium's form: columns for Tuple, Dict and arrays.

        The batch of a OneOf is a tuple of its samples, as in `gymnasium.vector.utils.batch_space`.
        """
        return self._root.decode(self._checked(heads, 2))

    def decode(self, heads: FloatArray) -> Any:
        """The same for what is known to be right."""
        return self._root.decode(heads)

    def unstack(self, batch: Any, size: int) -> list[Any]:
        """A batch of `size` as single actions, in the types that the space samples.

        Gymnasium's `iterate` makes a scalar of what a space of shape () samples as an array.
        """
        return self._root.unstack(batch, size)

    def to_heads(self, action: Any) -> FloatArray:
        """An action of the environment as its head vector `(H,)`."""
        return self._encode(self._root.stack([action]), 1).reshape(-1)

    def to_heads_batch(self, actions: Any) -> FloatArray:
        """A batch of actions in Gymnasium's form as head vectors `(B, H)`."""
        return self._encode(actions, self._root.length(actions))

    def _encode(self, batch: Any, num_actions: int) -> FloatArray:
        out = np.tile(self.spec.idle, (num_actions, 1))
        self._root.encode(batch, out)
        return out

    def _checked(self, heads: ArrayLike, ndim: int) -> FloatArray:
        values = as_array(heads)
        if values.ndim != ndim:
            shape = "(H,) for one action" if ndim == 1 else "(B, H) for a batch"
            raise SpaceError("head vectors have the wrong shape", got=values.shape, allowed=shape)
        return self.spec.check(values)


def free_elements(space: spaces.Space[Any]) -> NDArray[np.bool_]:
    """Which elements of an array are heads: all but those of a Box of reals with a single value."""
    if isinstance(space, spaces.Box) and np.dtype(space.dtype).kind == "f":
        return np.asarray(space.low != space.high)
    return np.ones(space.shape or (), dtype=np.bool_)


class _Builder:
    """Walks a space once, collecting heads and making the tree of nodes."""

    def __init__(self, bounds: Mapping[str, Bounds]) -> None:
        self.names: list[str] = []
        self.heads: list[Head] = []
        self.conditions: list[Condition | None] = []
        self.bounds = bounds
        self.bounded: set[str] = set()
        self.boxes: list[str] = []

    def check_bounds(self) -> None:
        """Refuses bounds that no Box of the space has asked for."""
        if isinstance(self.bounds, Mapping):
            unused: Any = sorted(set(self.bounds) - self.bounded, key=str)
            refused = bool(unused)
        else:  # with a Box, it would have been refused there
            unused, refused = self.bounds, True
        if refused:
            raise SpaceError(
                "bounds were given for places that are no Box",
                got=unused,
                allowed=", ".join(self.boxes) or "none: the space has no Box",
            )

    def node(self, space: Any, path: str, condition: Condition | None) -> Node:
        """The node of a space. A path that ends in "/" is that of an agent or of nothing yet."""
        here = f"{path}action" if path.endswith("/") or not path else path
        if isinstance(space, spaces.Dict):
            prefix = path if path.endswith("/") or not path else f"{path}/"
            children = [
                (key, self.node(child, f"{prefix}{key}", condition))
                for key, child in space.spaces.items()
            ]
            return self._branch(DictNode(here, children), here, children)
        if isinstance(space, spaces.Tuple):
            parts = [self.node(s, f"{here}[{i}]", condition) for i, s in enumerate(space.spaces)]
            return self._branch(TupleNode(here, parts), here, parts)
        if isinstance(space, spaces.OneOf):
            return self._one_of(space, here, condition)
        if isinstance(space, spaces.Box):
            return self._box(space, here, condition)
        if isinstance(space, spaces.Discrete):
            return self._options(space, here, np.asarray(space.n), space.start, condition)
        if isinstance(space, spaces.MultiDiscrete):
            return self._options(space, here, space.nvec, space.start, condition)
        if isinstance(space, spaces.MultiBinary):
            return self._options(space, here, np.full(space.shape, 2), 0, condition)
        raise SpaceError(
            f"the space at {here!r} cannot be an action",
            got=space,
            allowed="Discrete, MultiDiscrete, MultiBinary, Box, Tuple, Dict, OneOf, in any nesting",
            fix="Wrap the environment so that this part of its action is one of those.",
        )

    def _branch(self, node: Node, path: str, children: Sequence[Any]) -> Node:
        if not children:
            raise SpaceError(f"the space at {path!r} is empty", fix="Leave it out of the space.")
        return node

    def _one_of(self, space: spaces.OneOf[Any], path: str, condition: Condition | None) -> Node:
        column = len(self.heads)
        self._add(path, Choice(len(space.spaces)), condition)
        parts = [
            self.node(child, f"{path}:{i}", Condition(column, i, i + 1))
            for i, child in enumerate(space.spaces)
        ]
        return OneOfNode(path, column, parts)

    def _options(
        self,
        space: spaces.Space[Any],
        path: str,
        counts: NDArray[Any],
        start: Any,
        condition: Condition | None,
    ) -> Node:
        low = np.broadcast_to(np.asarray(start, dtype=np.int64), counts.shape)
        return self._leaf(space, path, low, low + counts - 1, condition)

    def _box(self, space: spaces.Box[Any], path: str, condition: Condition | None) -> Node:
        self.boxes.append(path)
        if not isinstance(self.bounds, Mapping):
            raise SpaceError(
                "bounds do not say which Box they are for",
                got=self.bounds,
                allowed=f"a dict of pairs by the names of Boxes: {{{path!r}: (low, high)}}",
            )
        low, high = space.low, space.high
        known = (np.abs(np.array((low, high), np.float64)) < UNBOUNDED).all(axis=0)
        if path in self.bounds:
            self.bounded.add(path)
            low, high = self._given_bounds(space, path)
        elif not known.all():
            element = tuple(map(int, np.argwhere(~known)[0]))
            raise SpaceError(
                f"the Box at {indexed(path, element)!r} has no bounds",
                got=f"[{space.low[element]}, {space.high[element]}]",
                allowed=f"bounds nearer to 0 than {UNBOUNDED:,.0f}",
                fix=f"Give them: bounds={{{path!r}: (low, high)}}.",
            )
        self._check_width(space, path, low, high)
        return self._leaf(space, path, low, high, condition)

    def _check_width(
        self, space: spaces.Box[Any], path: str, low: NDArray[Any], high: NDArray[Any]
    ) -> None:
        """Refuses whole numbers that heads, which are float64, cannot tell apart."""
        if np.dtype(space.dtype).kind in "iu":
            for element in np.ndindex(*space.shape):
                if int(low[element]) < -EXACT or int(high[element]) > EXACT:
                    raise SpaceError(
                        f"the Box at {indexed(path, element)!r} is too wide to be an action",
                        got=f"[{low[element]}, {high[element]}]",
                        allowed="whole numbers from -2**53 to 2**53",
                        fix=f"Give narrower bounds: bounds={{{path!r}: (low, high)}}.",
                    )

    def _given_bounds(self, space: spaces.Box[Any], path: str) -> tuple[NDArray[Any], NDArray[Any]]:
        try:
            low, high = (
                np.broadcast_to(np.asarray(bound, dtype=space.dtype), space.shape)
                for bound in self.bounds[path]
            )
        except (TypeError, ValueError) as error:
            raise SpaceError(
                f"the bounds given for {path!r} do not fit",
                got=self.bounds[path],
                allowed=f"(low, high), numbers or arrays of shape {space.shape}",
            ) from error
        if not ((space.low <= low) & (high <= space.high)).all():
            raise SpaceError(
                f"the bounds given for {path!r} reach beyond the space",
                got=self.bounds[path],
                allowed=str(space),
            )
        return low, high

    def _leaf(
        self,
        space: spaces.Space[Any],
        path: str,
        low: NDArray[Any],
        high: NDArray[Any],
        condition: Condition | None,
    ) -> Node:
        assert space.shape is not None
        assert space.dtype is not None
        if low.size == 0:
            raise SpaceError(
                f"the space at {path!r} has no elements",
                got=f"shape {space.shape}",
                fix="Leave it out of the space.",
            )
        first = len(self.heads)
        most_options = MAX_INTEGER_OPTIONS if isinstance(space, spaces.Box) else np.inf
        offsets, free = [], free_elements(space)
        for element in np.ndindex(*space.shape):
            if not free[element]:
                continue
            name = indexed(path, element)
            bottom, top = low[element].item(), high[element].item()
            is_choice = space.dtype.kind in "iub" and top - bottom < most_options
            offsets.append(float(bottom) if is_choice else 0.0)
            try:
                head = Choice(int(top) - int(bottom) + 1) if is_choice else Range(bottom, top)
            except SpaceError as error:
                raise SpaceError(f"the space at {name!r} cannot be a head: {error}") from None
            self._add(name, head, condition)
        return ArrayNode(
            path=path,
            columns=slice(first, len(self.heads)),
            shape=space.shape,
            dtype=np.dtype(space.dtype),
            low=low,
            high=high,
            offset=np.array(offsets),
            scalar=isinstance(space, spaces.Discrete),
            free=None if free.all() else free.reshape(-1),
        )

    def _add(self, name: str, head: Head, condition: Condition | None) -> None:
        self.names.append(name)
        self.heads.append(head)
        self.conditions.append(condition)
