"""Policies whose heads are drawn each by itself: from one network, or from a network each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headwise import ops
from headwise.heads.blueprint import Actions, Blueprint, Part
from headwise.heads.layout import Which
from headwise.ops import Buffer, Draw, Evaluation, Layer
from headwise.population.store import Free


class FactoredPolicy:
    """A distribution for every head, from one network or from as many as there are heads.

    Args:
        independent: Whether every head has a network of its own.
        which: The heads.
        conditional: Whether heads are in use only under their conditions.
    """

    depends = False
    """Whether a head's distribution depends on what others were."""

    def __init__(
        self,
        blueprint: Blueprint,
        *,
        independent: bool = False,
        which: Which = "all",
        conditional: bool = True,
    ) -> None:
        self.blueprint, layout = blueprint, blueprint.layout
        table = layout.table([(0, 0)] * len(range_of(blueprint, which)), which)
        per_number = 2 if blueprint.state_std or blueprint.kind == "beta" else 1
        numbers = per_number * len(table.continuous)
        if independent:
            places = [(h, 0) for h in range(table.num_heads)]
            width = max(table.widest, per_number if numbers else 0)
        else:
            places = [(0, numbers + first) for first in starts(table.sizes)]
            places += [(0, per_number * c) for c in range(len(table.continuous))]
            width = numbers + table.total
        self.copies = table.num_heads if independent else 1
        self.table = layout.table(
            places, which, conditional=conditional, stack=self.copies, kind=blueprint.kind,
            log_std=blueprint.log_std, state_std=per_number == 2,
        )  # fmt: skip
        if which == "all" and not self.depends:
            self.table.links = layout.links
        self.net = blueprint.network(
            self.input_widths(), [*blueprint.encoder(), Layer(width, gain=blueprint.policy_gain)],
            copies=self.copies, sees=self.sees(),
        )  # fmt: skip
        self._penalty = blueprint.scratch()("penalty", 1)
        self._penalty.gradient.fill_(1.0)
        self.parts: list[Part] = [self.net]
        self._free: Free | None = None
        if numbers and per_number == 1:
            self._free = Free(len(table.continuous), first_free(*blueprint.log_std))
            self.parts.insert(0, self._free)

    def input_widths(self) -> list[int]:
        """Widths of the network's inputs."""
        return [self.blueprint.features]

    def sees(self) -> Sequence[Sequence[Sequence[tuple[int, int]]]] | None:
        """What copies of the network see of them."""
        return None

    @property
    def std(self) -> Buffer | None:
        """Free standard deviations, (P, 1, 1, C), where they are parameters."""
        return None if self._free is None else self._free.buffer

    def inputs(self, x: Buffer, actions: Actions) -> list[Buffer]:
        """The inputs of the network along given actions."""
        return [x]

    def legal(self, actions: Actions) -> Buffer | None:
        """Which options given actions could have, (P, 1, B, total); None: any."""
        return actions.mask

    def outputs(self, x: Buffer, actions: Actions) -> tuple[Buffer, Buffer | None]:
        """The networks' outputs for given actions, and the free standard deviations."""
        return self.net.forward(self.inputs(x, actions)), self.std

    def sample(
        self, x: Buffer, uniform: Buffer, mask: Buffer | None, out: Sequence[Buffer]
    ) -> None:
        """Draws raw actions, unit actions and log-probabilities."""
        ops.sample(self.net.forward([x]), self.std, uniform, mask, table=self.table, out=out)

    def mode(self, x: Buffer, mask: Buffer | None, out: Sequence[Buffer]) -> None:
        """The greedy raw actions, and the same in unit form."""
        ops.mode(self.net.forward([x]), self.std, mask, table=self.table, out=out)

    def evaluate(self, x: Buffer, actions: Actions, out: Evaluation) -> None:
        """Log-probabilities and entropies of given actions."""
        y, std = self.outputs(x, actions)
        given = y, std, actions.raw, self.legal(actions), actions.old
        ops.evaluate(*given, table=self.table, given=self.depends, out=out)

    def rsample(self, x: Buffer, uniform: Buffer, mask: Buffer | None, out: Draw) -> None:
        """Draws actions through which gradients flow, with their entropies."""
        ops.rsample(self.net.forward([x]), self.std, uniform, mask, table=self.table, out=out)

    def rsample_backward(self, x: Buffer, uniform: Buffer, mask: Buffer | None, out: Draw) -> None:
        """From the gradients of what was drawn last to those of the parameters."""
        y = self.net.rows(x.num_rows)
        ops.rsample.backward(y, self.std, uniform, mask, table=self.table, out=out)
        self.net.backward([x])

    def backward(self, x: Buffer, actions: Actions, out: Evaluation) -> None:
        """From the gradients of the last evaluation to those of the parameters."""
        y = self.net.rows(x.num_rows)
        penalty = self.blueprint.mean_penalty
        given = y, self.std, actions.raw, self.legal(actions), actions.old
        ops.evaluate.backward(*given, table=self.table, given=self.depends, out=out)
        if penalty and self.table.continuous:
            ops.mean_penalty(y, table=self.table, coef=penalty, out=self._penalty)
            ops.mean_penalty.backward(
                y, table=self.table, coef=penalty, out=self._penalty, add=True
            )
        self.net.backward(self.inputs(x, actions))


def range_of(blueprint: Blueprint, which: Which) -> range:
    """The heads of a kind."""
    layout = blueprint.layout
    first = layout.num_discrete if which == "continuous" else 0
    return range(first, layout.num_discrete if which == "discrete" else layout.num_heads)


def starts(sizes: Sequence[int]) -> list[int]:
    """Where runs of so many begin."""
    return [sum(sizes[:i]) for i in range(len(sizes))]


def first_free(low: float, high: float) -> float:
    """A free number whose standard deviation is 1, or as near to it as the bounds allow."""
    share = min(max(-low / (high - low), 0.01), 0.99)
    return math.atanh(2.0 * share - 1.0)
