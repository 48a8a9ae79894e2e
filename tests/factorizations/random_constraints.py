"""Small actions under random constraints, and what is legal in them by looking at each action."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import assume
from hypothesis import strategies as st
from torch import Tensor

from headwise import ActionSpec, Choice, EnvError, Forbid, Given, Require, SpaceError
from headwise.envs.legal import check_legal
from headwise.heads.layout import Layout
from headwise.spaces import Condition


@dataclass
class Constrained:
    """A spec under constraints, with masks and tables of one state."""

    spec: ActionSpec
    """With links."""
    fixed: list[Any]
    """What was said of it."""
    tables: dict[int, tuple[tuple[int, ...], np.ndarray]]
    """What the environment gives: for a head its parents, and truths with an axis for each."""
    own: list[np.ndarray]
    """Which options each head has by itself."""

    def is_legal(self, action: np.ndarray) -> bool:
        """By the words of the constraints alone."""
        spec = self.spec
        used = spec.active(action)
        for head, value in enumerate(action.astype(int)):
            if not used[head]:
                continue
            if not self.own[head][value]:
                return False
            if head in self.tables:
                parents, table = self.tables[head]
                if used[list(parents)].all():
                    place = (*(int(action[p]) for p in parents), value)
                    if not table[place]:
                        return False
        named = {n: int(v) for n, v in zip(spec.names, action, strict=True)}
        for rule in self.fixed:
            heads = rule.options if isinstance(rule, Forbid) else rule.heads
            if all(used[spec.names.index(name)] for name in heads) and not rule.allows(named):
                return False
        return True

    def actions(self) -> np.ndarray:
        """Every action once, heads that are not in use at rest."""
        grid = np.array(list(itertools.product(*map(range, self.spec.cardinalities))), float)
        return grid[(self.spec.canonical(grid) == grid).all(-1)]

    def legal(self) -> np.ndarray:
        """The mask of one state, as environments give it."""
        legal = self.spec.full_mask.copy()
        for head, own in enumerate(self.own):
            legal[head, : len(own)] = own
        row = self.spec.num_heads
        for link in self.spec.given:
            table = self.tables[link.child][1]
            flat = table.reshape(-1, table.shape[-1])
            legal[row : row + len(flat), : flat.shape[1]] = flat
            row += len(flat)
        return legal

    def mask(self, layout: Layout, members: int, rows: int) -> Tensor | None:
        """The same for a learner, (P, B, columns)."""
        legal = torch.as_tensor(self.legal()).expand(members, rows, -1, -1)
        return layout.mask(legal)


@st.composite
def conditions(draw: Any, sizes: list[int]) -> list[Condition | None]:
    """No conditions, or one or two heads that another decides about."""
    found: list[Condition | None] = [None] * len(sizes)
    for head in draw(st.sets(st.integers(1, len(sizes) - 1), max_size=2)):
        decider = draw(st.integers(0, head - 1))
        low = draw(st.integers(0, sizes[decider] - 1))
        found[head] = Condition(decider, low, low + 1)
    return found


@st.composite
def problems(draw: Any, *, trees: bool = False) -> Constrained:
    """A small action under constraints that leave something to do in every state.

    Args:
        trees: Whether a head's options depend on one other head at most.
    """
    sizes = draw(st.lists(st.integers(2, 3), min_size=3, max_size=4))
    names = [f"h{h}" for h in range(len(sizes))]
    when = draw(conditions(sizes)) if draw(st.booleans()) else [None] * len(sizes)
    plain = ActionSpec(tuple(names), tuple(map(Choice, sizes)), tuple(when))
    tables: dict[int, tuple[tuple[int, ...], np.ndarray]] = {}
    order = draw(st.permutations(range(len(sizes))))
    for place, head in enumerate(order[1:], 1):
        if draw(st.booleans()):
            most = 1 if trees else 2
            some = draw(st.sets(st.sampled_from(order[:place]), min_size=1, max_size=most))
            parents = tuple(sorted(some))
            shape = [sizes[p] for p in parents] + [sizes[head]]
            count = int(np.prod(shape))
            bits = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            table = np.array(bits).reshape(shape)
            table[~table.any(-1)] = True
            tables[head] = (parents, table)
    fixed: list[Any] = []
    for _ in range(draw(st.integers(0, 2))):
        some = draw(st.sets(st.sampled_from(names), min_size=1, max_size=2 if trees else 3))
        options = {n: draw(st.integers(0, sizes[names.index(n)] - 1)) for n in sorted(some)}
        fixed.append(Forbid(**options))
    if draw(st.booleans()):
        one, other = sorted(draw(st.sets(st.sampled_from(names), min_size=2, max_size=2)))
        fixed.append(Require(lambda a: a[one] <= a[other], heads=(one, other)))
    own = [np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))) for n in sizes]
    for some in own:
        if not some.any():
            some[:] = True
    given = [Given(**{names[h]: [names[p] for p in parents]}) for h, (parents, _) in tables.items()]
    assume(fixed or given)
    try:
        spec = plain.constrained(*fixed, *given)
    except SpaceError:  # the tables go around in a circle with conditions, or nothing is left
        assume(False)
    found = Constrained(spec, fixed, tables, own)
    assume(spec.links)
    legal = found.legal()[None, None]
    try:
        check_legal(legal, spec, spec.full_mask, np.zeros((1, 1), dtype=bool))
    except EnvError:
        assume(False)
    if trees:
        assume(Layout(spec).links.is_tree)
    return found
