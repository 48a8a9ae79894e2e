"""Cases of every operation: inputs at odd sizes with settings that differ between members.

Run as a program it prints one digest of what all compiled ways make of all cases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import link_cases
import network_cases
import torch
from torch import Tensor

from headwise.heads.joint_actions import JointActions
from headwise.ops import Buffer, Embedding, HeadTable, Queries, RatioGroups, When
from headwise.ops.operation import Operation, operations
from headwise.spaces import ActionSpec, Choice

ROWS = 37  # two groups of sixteen and five
WIDE = (3, 70, 2)  # a head that is wider than any group of registers


@dataclass
class Case:
    """Arguments of an operation for three members.

    Args:
        inputs: (3, C, B, W) each, or None.
        settings: By name.
        learns: The inputs that have room for a gradient.
        slopes: The outputs that have a gradient; None: all, or none where nothing learns.
        bits: The inputs that are whole numbers in bits.
    """

    inputs: Sequence[Tensor | None]
    settings: dict[str, Any] = field(default_factory=dict)
    learns: Sequence[int] = ()
    slopes: Sequence[int] | None = None
    bits: Sequence[int] = ()


class Numbers:
    """Made-up numbers, (3, copies, rows, columns)."""

    def __init__(self) -> None:
        self._generator = torch.Generator().manual_seed(5)

    def normal(self, columns: int = 1, rows: int = ROWS, copies: int = 1) -> Tensor:
        return torch.randn(3, copies, rows, columns, generator=self._generator)

    def uniform(self, columns: int = 1, rows: int = ROWS, copies: int = 1) -> Tensor:
        return torch.rand(3, copies, rows, columns, generator=self._generator)

    def coins(self, columns: int = 1, rows: int = ROWS, copies: int = 1) -> Tensor:
        return (self.uniform(columns, rows, copies) < 0.6).float()

    def setting(self, low: float, high: float, columns: int = 1) -> Tensor:
        return low + (high - low) * self.uniform(columns, 1)

    def whole(self, below: int, columns: int = 1, rows: int = ROWS, copies: int = 1) -> Tensor:
        return (self.uniform(columns, rows, copies) * below).floor()

    def options(self, table: HeadTable, copies: int = 1) -> Tensor:
        """An option of each discrete head."""
        return torch.cat([self.whole(n, copies=copies) for n in table.sizes], dim=-1)

    def raw(self, table: HeadTable) -> Tensor:
        """Raw actions."""
        numbers = [self.normal(len(table.continuous))] if table.continuous else []
        return torch.cat([*([self.options(table)] if table.sizes else []), *numbers], dim=-1)

    def mask(self, table: HeadTable) -> Tensor:
        """Which options may be chosen: one of each head at least."""
        mask = self.coins(table.total)
        for start, n in zip(starts(table.sizes), table.sizes, strict=True):
            kept = start + self.whole(n).long()
            mask.scatter_(-1, kept, 1.0)
        return mask

    def legal(self, table: HeadTable, mask: Tensor) -> Tensor:
        """An option of each discrete head that a mask allows."""
        parts = mask.split(table.sizes, dim=-1)
        return torch.cat([x.argmax(-1, keepdim=True).float() for x in parts], dim=-1)

    def log_probs(self, table: HeadTable) -> Tensor:
        """Of all options, side by side."""
        parts = [self.normal(n).log_softmax(-1) for n in table.sizes]
        return torch.cat(parts, dim=-1)


def starts(sizes: Sequence[int]) -> list[int]:
    return [sum(sizes[:i]) for i in range(len(sizes))]


# --- heads ----------------------------------------------------------------------------------------

NONE = (None,) * 9
TREE = (None, When(0, 1.0, 3.0), When(1, 0.0, 2.0))


def side_by_side(options: Sequence[int], conditions: Sequence[When | None] = NONE, **kinds: Any
) -> HeadTable:  # fmt: skip
    """Heads in one output, which begins with a column of somebody else."""
    width = 2 if kinds.get("state_std") else 1
    places = [(0, 1 + first) for first in starts([n or width for n in options])]
    return HeadTable(options, conditions[: len(options)], places, **kinds)


def apart(options: Sequence[int], conditions: Sequence[When | None] = NONE, **kinds: Any
) -> HeadTable:  # fmt: skip
    """Heads in copies of their own, in another order."""
    copies = list(reversed(range(len(options))))
    places = [(copy, h % 2) for h, copy in enumerate(copies)]
    return HeadTable(options, conditions[: len(options)], places, stack=len(options), **kinds)


def outputs(new: Numbers, table: HeadTable, networks: int = 1, scale: float = 1.5) -> Tensor:
    """What networks say, with columns that nobody reads."""
    width = 2 if table.state_std or table.kind == "beta" else 1
    last = max(
        column + (n or width) for (_, column), n in zip(table.places, table.options, strict=True)
    )
    return scale * new.normal(last + 2, copies=networks * table.stack)


GAUSSIAN = {"kind": "squashed", "state_std": True}
POLICIES: dict[str, Callable[[], HeadTable]] = {
    "two": lambda: side_by_side((2,)),
    "wide": lambda: side_by_side(WIDE),
    "hybrid": lambda: side_by_side((3, 5, 0, 0), **GAUSSIAN),
    "apart": lambda: apart((3, 5, 0), **GAUSSIAN),
    "free": lambda: side_by_side((4, 0, 0), kind="squashed"),
    "clipped": lambda: side_by_side((0, 0, 0), kind="clipped"),
    "tree": lambda: side_by_side((4, 3, 5), TREE),
    "tree of numbers": lambda: side_by_side(
        (4, 2, 0, 0), (None, When(0, 0.0, 2.0), When(0, 1.0, 3.0), When(1, 1.0, 2.0)), **GAUSSIAN
    ),
    "by a number": lambda: side_by_side((3, 0), (When(1, -0.5, 0.25), None), **GAUSSIAN),
    "beta": lambda: side_by_side((3, 0), kind="beta", state_std=True),
}


def free_of(new: Numbers, table: HeadTable) -> Tensor | None:
    """Free standard deviations, where they are parameters."""
    needed = table.continuous and not table.state_std and table.kind != "beta"
    return new.setting(-0.5, 0.5, len(table.continuous)) if needed else None


cases: dict[str, Callable[[Numbers], Iterator[Case]]] = {}
"""The cases of operations by name."""


def of(function: Callable[[Numbers], Iterator[Case]]) -> Callable[[Numbers], Iterator[Case]]:
    cases[function.__name__.removesuffix("_")] = function
    return function


# --- sample ---------------------------------------------------------------------------------------


@of
def sample(new: Numbers) -> Iterator[Case]:
    for name, make in POLICIES.items():
        table = make()
        mask = new.mask(table) if name in ("wide", "hybrid", "tree") else None
        uniform = new.uniform(table.num_uniforms)
        inputs = outputs(new, table), free_of(new, table), uniform, mask
        yield Case(inputs, {"table": table})


@of
def mode(new: Numbers) -> Iterator[Case]:
    for name, make in POLICIES.items():
        table = make()
        mask = new.mask(table) if name in ("wide", "hybrid", "tree") else None
        yield Case((outputs(new, table), free_of(new, table), mask), {"table": table})


@of
def explore(new: Numbers) -> Iterator[Case]:
    for masked in (False, True):
        table = side_by_side(WIDE)
        mask = new.mask(table) if masked else None
        uniform = new.uniform(len(WIDE), 2 * ROWS)
        yield Case((new.options(table), uniform, new.setting(0.2, 0.6), mask), {"table": table})


@of
def evaluate(new: Numbers) -> Iterator[Case]:
    for name, make in POLICIES.items():
        for given in (False, True):
            table = make()
            raw, mask, old = new.raw(table), None, None
            if table.kind == "beta":
                raw = torch.cat([raw[..., :1], new.uniform()], dim=-1)
            if name in ("wide", "hybrid", "tree"):
                mask = new.mask(table)
                raw[..., : len(table.sizes)] = new.legal(table, mask)
            if name != "two":
                free = free_of(new, table)
                old = operations.get("distribution").definition(
                    outputs(new, table), free, mask, table=table
                )
            inputs = outputs(new, table), free_of(new, table), raw, mask, old
            yield Case(inputs, {"table": table, "given": given}, learns=(0, 1))


@of
def distribution(new: Numbers) -> Iterator[Case]:
    table = POLICIES["hybrid"]()
    yield Case((outputs(new, table), None, None), {"table": table})


@of
def mean_penalty(new: Numbers) -> Iterator[Case]:
    table = POLICIES["hybrid"]()
    yield Case((outputs(new, table, scale=4.0),), {"table": table, "coef": 0.3}, learns=(0,))


@of
def rsample(new: Numbers) -> Iterator[Case]:
    for name in ("wide", "hybrid", "apart", "tree of numbers", "beta", "clipped"):
        table = POLICIES[name]()
        mask = new.mask(table) if name in ("wide", "hybrid") else None
        uniform = new.uniform(table.num_uniforms)
        inputs = outputs(new, table), free_of(new, table), uniform, mask
        yield Case(inputs, {"table": table}, learns=(0,))


# --- links ----------------------------------------------------------------------------------------


@of
def legal_options(new: Numbers) -> Iterator[Case]:
    for conditional in (False, True):
        table, links = link_cases.linked(conditional=conditional)
        inputs = new.options(table), link_cases.mask_of(new, table)
        yield Case(inputs, {"links": links})


@of
def explore_linked(new: Numbers) -> Iterator[Case]:
    for conditional in (False, True):
        table, links = link_cases.linked(conditional=conditional)
        uniform, mask = new.uniform(4, 2 * ROWS), link_cases.mask_of(new, table)
        yield Case((new.options(table), uniform, new.setting(0.2, 0.6), mask), {"links": links})


@of
def best_linked(new: Numbers) -> Iterator[Case]:
    for conditional in (False, True):
        table, links = link_cases.linked(conditional=conditional)
        mask = link_cases.mask_of(new, table)
        yield Case((outputs(new, table, 2), mask), {"table": table, "links": links})


@of
def linked_advantages(new: Numbers) -> Iterator[Case]:
    for conditional in (False, True):
        table, links = link_cases.linked(conditional=conditional)
        inputs = outputs(new, table, 2), new.options(table), link_cases.mask_of(new, table)
        yield Case(inputs, {"table": table, "links": links}, learns=(0,))


# --- policy loss ----------------------------------------------------------------------------------


@of
def policy_loss(new: Numbers) -> Iterator[Case]:
    for groups, heads in (((0,), 1), ((0, 0, 0), 3), ((0, 1, 2), 3), ((1, 0, 1, 1), 4)):
        for kl in (None, new.uniform(heads)):
            old = new.normal(heads)
            log_prob = old + 0.3 * new.normal(heads)
            log_prob[:, :, 3] += 30.0  # a ratio that stops growing
            count = max(groups) + 1
            advantage = new.normal(1 if count == 3 else count)
            share = new.coins() / 20.0
            rest = new.setting(0.1, 0.3), new.setting(0.0, 0.1), new.setting(0.0, 0.5)
            inputs = log_prob, new.normal(heads), kl, old, advantage, share, *rest
            ratios = RatioGroups(groups, tuple(1.0 / (h + 1) for h in range(heads)))
            yield Case(inputs, {"ratios": ratios}, learns=(0, 1, 2))


@of
def movement(new: Numbers) -> Iterator[Case]:
    for groups in ((0,), (1, 0, 1)):
        heads = len(groups)
        old, ratios = new.normal(heads), RatioGroups(groups, (1.0,) * heads)
        log_prob = old + 0.2 * new.normal(heads)
        rest = new.setting(0.1, 0.3), new.normal(3 + 3 * heads, 1)
        inputs = log_prob, new.normal(heads), old, new.uniform(), *rest
        yield Case(inputs, {"ratios": ratios})


@of
def adapt_coefficient(new: Numbers) -> Iterator[Case]:
    for target in (0.01, 0.5, 3.0):
        yield Case((new.setting(0.0, 1.0), new.setting(0.0, 99.0)), {"target": target})


@of
def group_advantages(new: Numbers) -> Iterator[Case]:
    for mean in (False, True):
        ratios = RatioGroups((1, 0, 1), (1.0,) * 3)
        yield Case((new.normal(3),), {"ratios": ratios, "mean": mean})


# --- values ---------------------------------------------------------------------------------------

TABLES: dict[str, Callable[[], HeadTable]] = {
    "wide": lambda: side_by_side(WIDE),
    "apart": lambda: apart((4, 3, 5)),
}


def each_values(new: Numbers) -> Iterator[tuple[HeadTable, int, Tensor]]:
    """Tables, networks, and what networks say of options."""
    for make in TABLES.values():
        for networks in (1, 2):
            table = make()
            yield table, networks, outputs(new, table, networks)


@of
def greedy(new: Numbers) -> Iterator[Case]:
    for table, _, y in each_values(new):
        for mask in (None, new.mask(table)):
            yield Case((y, mask), {"table": table})


@of
def advantages(new: Numbers) -> Iterator[Case]:
    for table, networks, y in each_values(new):
        heads = len(table.sizes)
        probs = new.log_probs(table).exp()
        best = new.options(table, networks)
        plain = y, new.options(table), None, None, None
        centered = y, new.options(table, networks), best, None, None
        other = y, new.options(table), None, probs, new.coins(heads)
        for inputs in (plain, centered, other):
            yield Case(inputs, {"table": table}, learns=(0,))


@of
def option_values(new: Numbers) -> Iterator[Case]:
    for table, networks, y in each_values(new):
        best = new.options(table, networks)
        for rest in ((None, None), (best, new.coins(len(table.sizes)))):
            yield Case((y, new.options(table), *rest), {"table": table}, learns=(0,))


@of
def total(new: Numbers) -> Iterator[Case]:
    for adds_up in (False, True):
        for value in (None, new.normal(copies=2), new.normal(copies=6)):
            if adds_up and value is not None and value.shape[1] == 6:
                continue
            inputs = value, new.normal(3, copies=2)
            yield Case(inputs, {"adds_up": adds_up}, learns=(0, 1))


@of
def heads_last(new: Numbers) -> Iterator[Case]:
    for copies in (1, 3):
        yield Case((new.normal(copies=copies),), learns=(0,))


@of
def value_error(new: Numbers) -> Iterator[Case]:
    for huber in (False, True):
        for columns in (1, 3):
            inputs = new.normal(3, copies=2), new.normal(columns), new.uniform(columns) / 30.0
            settings = {"coef": 0.7, "huber": huber}
            yield Case(inputs, settings, learns=(0,), slopes=(0,))


@of
def clipped_value_error(new: Numbers) -> Iterator[Case]:
    for clip in (0.05, 1.0, 100.0):
        inputs = new.normal(2), new.normal(), new.normal(2), new.uniform() / 30.0
        yield Case(inputs, {"coef": 0.7, "clip": clip}, learns=(0,))


@of
def in_use(new: Numbers) -> Iterator[Case]:
    for name in ("tree", "tree of numbers", "by a number", "two"):
        table = POLICIES[name]()
        yield Case((new.raw(table),), {"table": table})


@of
def shares_in_use(new: Numbers) -> Iterator[Case]:
    for by_head in (False, True):
        yield Case((new.coins(3),), {"scale": 1.7, "by_head": by_head})
    yield Case((torch.zeros(3, 1, ROWS, 2),), {"scale": 1.7, "by_head": True})


@of
def td_target(new: Numbers) -> Iterator[Case]:
    for bonus, expected in ((None, None), (new.normal(3), new.normal(3, 1)), (None, new.normal(3))):
        inputs = new.normal(), new.uniform(), new.normal(3, copies=2), bonus, expected
        yield Case(inputs)


@of
def discount_of(new: Numbers) -> Iterator[Case]:
    yield Case((new.coins(), new.setting(0.9, 1.0)))


@of
def munchausen(new: Numbers) -> Iterator[Case]:
    settings = {"weight": 0.9, "floor": -1.0, "adds_up": True}
    yield Case((new.normal(), -new.uniform(3), new.coins(3)), settings)


@of
def actor_loss(new: Numbers) -> Iterator[Case]:
    for copies in (1, 2):
        value = new.normal(2, copies=copies)
        value[:, :, 4] = 0.25  # as large as each other
        for rest in ((None, None), (new.normal(2), new.uniform(2))):
            yield Case((value, *rest), learns=(0, 1))


@of
def row_mean(new: Numbers) -> Iterator[Case]:
    yield Case((new.normal(3, copies=2),), learns=(0,))


@of
def multiply(new: Numbers) -> Iterator[Case]:
    yield Case((new.normal(3), new.normal(3)), learns=(0, 1))
    yield Case((new.normal(3, copies=2), new.normal(1)), learns=(0, 1))
    yield Case((new.normal(3, 1), new.normal(1, copies=2)), learns=(0, 1))


@of
def add(new: Numbers) -> Iterator[Case]:
    yield Case((new.normal(3), new.normal(3)), learns=(0, 1))
    yield Case((new.normal(1), new.normal(3, 1)), learns=(0, 1))


# --- mixture --------------------------------------------------------------------------------------


BENDS = [{"relu": relu, "soft": soft} for soft in (False, True) for relu in (False, True)]


@of
def mix(new: Numbers) -> Iterator[Case]:
    for value, heads, units, copies in ((True, 3, 21, 2), (False, 1, 16, 1), (True, 4, 5, 1)):
        weights = new.normal((heads + 1) * units, copies=copies)
        v = new.normal(copies=copies) if value else None
        inputs = v, new.normal(heads, copies=copies), weights
        for bends in BENDS:
            yield Case(inputs, bends, learns=(0, 1, 2))


@of
def mix_gradient(new: Numbers) -> Iterator[Case]:
    for bends in BENDS:
        yield Case((new.normal(3), new.normal(4 * 21)), bends)


@of
def weigh(new: Numbers) -> Iterator[Case]:
    yield Case((new.normal(), new.normal(3), new.normal(3)), learns=(0, 1, 2))


# --- returns --------------------------------------------------------------------------------------


@of
def gae(new: Numbers) -> Iterator[Case]:
    for columns, weight, envs in ((1, None, 1), (1, new.uniform(3), 19), (2, None, 4)):
        rows = 19 * 2 if envs == 19 else 20
        value = new.normal(columns, rows), new.normal(columns, rows)
        ends = new.coins(1, rows), new.coins(1, rows)
        weight = new.uniform(3, rows) if weight is not None else None
        rest = weight, new.setting(0.9, 1.0), new.setting(0.8, 1.0)
        yield Case((new.normal(1, rows), *value, *ends, *rest), {"num_envs": envs})


@of
def row_shares(new: Numbers) -> Iterator[Case]:
    yield Case((new.coins(),))
    yield Case((torch.zeros(3, 1, ROWS, 1),))


@of
def standardize(new: Numbers) -> Iterator[Case]:
    for columns in (1, 3):
        share = new.uniform()
        yield Case((3.0 + new.normal(columns), share / share.sum(-2, keepdim=True)))


# --- schedules ------------------------------------------------------------------------------------


def clocks() -> Tensor:
    return torch.tensor([0, 40, 1000]).view(3, 1, 1, 1).view(torch.float32)


@of
def linear(new: Numbers) -> Iterator[Case]:
    for span in (0.0, 100.0):
        inputs = clocks(), new.setting(0.5, 1.0), new.setting(0.0, 0.1)
        yield Case(inputs, {"span": span}, bits=(0,))


@of
def decaying(new: Numbers) -> Iterator[Case]:
    yield Case((clocks(),), {"start": 0.9, "decay": 0.97, "floor": 0.05}, bits=(0,))


# --- maximum entropy ------------------------------------------------------------------------------


@of
def soft_value(new: Numbers) -> Iterator[Case]:
    for table, networks, y in each_values(new):
        heads = len(table.sizes)
        for adds_up, plain, own in ((True, False, 1), (False, True, 1), (False, False, heads)):
            value = None if plain else new.normal(copies=networks * own)
            mask = new.mask(table) if adds_up else None
            used = new.coins(heads) if own > 1 else None
            inputs = value, y, new.setting(0.1, 0.9, heads), mask, used
            settings = {"table": table, "adds_up": adds_up, "plain": plain}
            yield Case(inputs, settings, learns=(0, 1))
    table = POLICIES["tree"]()
    settings = {"table": table, "adds_up": True, "plain": False}
    y, alpha = outputs(new, table, 2), new.setting(0.1, 0.9, 3)
    yield Case((new.normal(copies=2), y, alpha, None, None), settings, learns=(0, 1))


@of
def boltzmann(new: Numbers) -> Iterator[Case]:
    for table, networks, y in each_values(new):
        heads = len(table.sizes)
        slope = new.uniform(heads, copies=networks)
        for rest in ((None, None), (slope, new.mask(table))):
            alpha, uniform = new.setting(0.1, 0.9, heads), new.uniform(heads)
            yield Case((y, rest[0], alpha, uniform, rest[1]), {"table": table})


@of
def scaled_log_policy(new: Numbers) -> Iterator[Case]:
    for table, _, y in each_values(new):
        alpha = new.setting(0.1, 0.9, len(table.sizes))
        yield Case((y, new.options(table), alpha, None), {"table": table})


@of
def chance_of_use(new: Numbers) -> Iterator[Case]:
    table = POLICIES["tree of numbers"]()
    inputs = outputs(new, table), new.setting(0.1, 0.9, 2), None, new.raw(table)
    yield Case(inputs, {"table": table})


@of
def entropy_bonus(new: Numbers) -> Iterator[Case]:
    for adds_up in (False, True):
        for weight in (None, new.uniform(3), new.setting(0.1, 1.0, 3)):
            inputs = new.normal(3, copies=2), new.setting(0.1, 0.9, 3), weight
            yield Case(inputs, {"adds_up": adds_up}, learns=(0,))


@of
def target_entropy(new: Numbers) -> Iterator[Case]:
    for name in ("hybrid", "wide"):
        table = POLICIES[name]()
        for mask in (None, new.mask(table)):
            yield Case((new.setting(0.2, 0.9), mask), {"table": table})


@of
def entropy_surplus(new: Numbers) -> Iterator[Case]:
    for rows, use in ((1, None), (ROWS, new.uniform(3))):
        yield Case((new.normal(3), new.normal(3, rows), use), {"groups": (1, 0, 1)})


@of
def temperatures(new: Numbers) -> Iterator[Case]:
    yield Case((new.normal(2, 1),), {"groups": (1, 0, 1)})


# --- actions as inputs ----------------------------------------------------------------------------


@of
def embed(new: Numbers) -> Iterator[Case]:
    table = side_by_side((3, 5, 4, 0, 0), **GAUSSIAN)
    embedding = Embedding(table, (False, True, False), (3, 2, 1, 0, 4))
    action = torch.cat([new.options(table), new.uniform(2)], dim=-1)
    weights = new.log_probs(table).exp()
    for options, use in ((None, None), (None, new.coins(5)), (weights, new.coins(5))):
        learns = (0,) if options is None else (0, 1)
        yield Case((action, options, use), {"embedding": embedding}, learns=learns)


@of
def relax(new: Numbers) -> Iterator[Case]:
    table = side_by_side(WIDE)
    noise = new.uniform(len(WIDE) * max(WIDE))
    yield Case((new.log_probs(table), noise, new.setting(0.5, 1.0)), {"table": table}, (0,), (0,))


def queries() -> tuple[HeadTable, Queries]:
    table = side_by_side((3, 5, 4))
    return table, Queries(table, ROWS)


@of
def ask(new: Numbers) -> Iterator[Case]:
    table, asked = queries()
    for substitute in (False, True):
        x = new.options(table) if substitute else new.normal(7)
        yield Case((x,), {"queries": asked, "substitute": substitute})


@of
def expected_value(new: Numbers) -> Iterator[Case]:
    table, asked = queries()
    found = new.normal(1, asked.count, copies=2)
    for paid in (None, new.normal(2, asked.count)):
        yield Case((new.log_probs(table), found, paid), {"queries": asked}, learns=(0,))


# --- operations of learners, which have no compiled way -------------------------------------------


@of
def head_importance(new: Numbers) -> Iterator[Case]:
    table = side_by_side((3, 5, 4))
    for kind in ("uniform", "range", "range_slope", "grad", "signed", "state"):
        probs, mask, slope = new.log_probs(table).exp(), new.mask(table), new.uniform(3)
        inputs = outputs(new, table), new.normal(3), probs, mask, slope
        yield Case(inputs, {"table": table, "kind": kind})


@of
def credit_weights(new: Numbers) -> Iterator[Case]:
    for use in (None, new.coins(3).index_fill(-1, torch.tensor([0]), 1.0)):
        settings = {"span": 100.0, "floor": 0.1}
        yield Case((new.uniform(3), clocks(), use), settings, bits=(1,))
        yield Case((new.normal(3), clocks(), use), settings | {"signed": True}, bits=(1,))


@of
def value_of_next(new: Numbers) -> Iterator[Case]:
    rows = 10 * 4
    given = new.normal(1, rows), new.normal(1, rows), new.coins(1, rows), new.coins(1, rows)
    yield Case(given, {"num_envs": 4})


@of
def expected_mixture(new: Numbers) -> Iterator[Case]:
    table = side_by_side((3, 5))
    inputs = outputs(new, table), new.log_probs(table).exp(), new.normal(3 * 7)
    for bends in BENDS:
        yield Case(inputs, {"table": table, **bends})


@of
def even_chances(new: Numbers) -> Iterator[Case]:
    table = side_by_side((3, 5))
    for mask in (None, new.mask(table)):
        yield Case((outputs(new, table, 2), mask), {"table": table})


@of
def critic_options(new: Numbers) -> Iterator[Case]:
    table = POLICIES["hybrid"]()
    yield Case((new.raw(table).clamp(-1.0, 4.0),), {"table": table, "bins": 5})


@of
def option_probs(new: Numbers) -> Iterator[Case]:
    for name in ("hybrid", "beta"):
        table = POLICIES[name]()
        yield Case((outputs(new, table), None, None), {"table": table, "bins": 5})


@of
def explained_variance(new: Numbers) -> Iterator[Case]:
    yield Case((new.normal(2), new.normal(2), new.coins()))


@of
def only_column(new: Numbers) -> Iterator[Case]:
    yield Case((new.normal(3),), {"column": 1, "count": 3, "times": 2})


@of
def gradient_shares(new: Numbers) -> Iterator[Case]:
    yield Case((new.normal(19, 2),), {"ratios": RatioGroups((1, 0, 1), (1.0,) * 3)})


@of
def heads_of_joint(new: Numbers) -> Iterator[Case]:
    spec = ActionSpec.of(a=Choice(3), b=Choice(5), c=Choice(2))
    actions = JointActions(spec, torch.device("cpu"))
    yield Case((new.whole(actions.size),), {"actions": actions})


@of
def summed_cosine(new: Numbers) -> Iterator[Case]:
    yield Case((new.normal(19, 3), new.normal(19, 3)))


# --- playing a case -------------------------------------------------------------------------------


class Played:
    """What an operation made of a case: outputs, and gradients of what learns.

    Args:
        operation: The operation.
        case: The case.
        members: Which members play.
        windowed: Whether numbers are columns of something wider.
        added: Whether gradients are added to what is there.
        recorded: Whether it is what a program made that recorded it.
    """

    def __init__(
        self,
        operation: Operation,
        case: Case,
        members: Sequence[int] = (0, 1, 2),
        *,
        windowed: bool = False,
        added: bool = False,
        recorded: bool = False,
    ) -> None:
        self._members, self._windowed = list(members), windowed
        found = define(operation, case)
        self.inputs = [
            None if x is None else self._buffer(x, learns=i in case.learns)
            for i, x in enumerate(case.inputs)
        ]
        slopes = range(len(found)) if case.slopes is None else case.slopes
        learns = bool(case.learns)
        self.outputs = [
            self._buffer(y, learns=learns and k in slopes, value=0.0) for k, y in enumerate(found)
        ]
        for y, slope in zip(self.outputs, slopes_of(found), strict=True):
            if y.has_gradient:
                y.gradient.copy_(slope[self._members])
        out = self.outputs[0] if len(self.outputs) == 1 else self.outputs
        self.is_compiled = operation._is_compiled(self.outputs, case.settings)

        def play() -> None:
            operation(*self.inputs, out=out, **case.settings)
            if learns:
                operation.backward(*self.inputs, out=out, add=added, **case.settings)

        learned = [x for x in self.inputs if x is not None and x.has_gradient]
        for x in learned:
            x.gradient.fill_(0.5)
        if recorded:
            program = operations_core().Program()
            with program:
                play()
            for y in self.outputs:
                y.tensor.zero_()
            for x in learned:
                x.gradient.fill_(0.5)
            program.run(1, 1)
        else:
            play()
        self.numbers = [y.tensor.clone() for y in self.outputs]
        self.gradients = [x.gradient.clone() for x in learned]

    def _buffer(self, x: Tensor, *, learns: bool, value: float | None = None) -> Buffer:
        around = 2 * self._windowed
        shape = len(self._members), x.shape[2], x.shape[3] + 2 * around
        wide = Buffer(*shape, copies=x.shape[1], gradient=learns)
        wide.tensor.fill_(float("nan"))  # nobody may read what is beside
        own = wide.columns(around, x.shape[3])
        own.tensor.copy_(x[self._members]) if value is None else own.tensor.fill_(value)
        return own


def operations_core() -> Any:
    from headwise.ops.core import core

    return core


def define(operation: Operation, case: Case) -> list[Tensor]:
    """What the definition says, with gradients in float64."""
    given = [
        None if x is None else x if i in case.bits else x.double().requires_grad_(i in case.learns)
        for i, x in enumerate(case.inputs)
    ]
    found = operation.definition(*given, **case.settings)
    case.given = given  # type: ignore[attr-defined]
    return list(found) if isinstance(found, tuple) else [found]


def slopes_of(found: Sequence[Tensor]) -> list[Tensor]:
    """The gradients that come back to outputs."""
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(y.shape, generator=generator) for y in found]


def expected(operation: Operation, case: Case) -> tuple[list[Tensor], list[Tensor]]:
    """Outputs, and gradients of what learns, by the definition in float64."""
    found = define(operation, case)
    given = case.given  # type: ignore[attr-defined]
    learned = [given[i] for i in case.learns if given[i] is not None]
    if not learned:
        return found, []
    slopes = range(len(found)) if case.slopes is None else case.slopes
    back = [k for k in slopes if found[k].requires_grad]
    weights = slopes_of(found)
    gradients = torch.autograd.grad(
        [found[k] for k in back], learned, [weights[k].double() for k in back], allow_unused=True
    )
    return [y.detach() for y in found], [
        torch.zeros_like(x) if g is None else g for x, g in zip(learned, gradients, strict=True)
    ]


def every_case(name: str) -> list[Case]:
    """The cases of an operation, always the same."""
    return list(cases[name](Numbers()))


def digest() -> str:
    """Of all that compiled ways make of all cases, and networks of theirs."""
    found = hashlib.sha256(network_cases.digest().encode())
    for name, operation in operations.items():
        for case in every_case(name):
            played = Played(operation, case)
            if played.is_compiled:
                for x in (*played.numbers, *played.gradients):
                    found.update(x.contiguous().numpy().tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(digest())
