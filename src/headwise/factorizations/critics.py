"""Critics for policy gradients: a plain value, and the branching critic of VDN-PPO and PPO-MIX."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from headwise import ops
from headwise.checks import checked_count
from headwise.factorizations.policies import starts
from headwise.heads.blueprint import Actions, Blueprint, Part
from headwise.heads.layout import Layout
from headwise.nets.dueling import Dueling
from headwise.ops import Buffer, HeadTable, Layer, When, operation
from headwise.ops.linked import distribution_of


class ValueCritic:
    """V(s): the value path of the branching critic, so that all critics have equal capacity.

    Args:
        num_values: Networks, one for each head where heads have their own.
    """

    def __init__(self, blueprint: Blueprint, num_values: int = 1) -> None:
        self.num_values = num_values
        layers = blueprint.encoder(blueprint.gain)
        if blueprint.branch_width:
            layers.append(Layer(blueprint.branch_width, "tanh", blueprint.gain))
        self._net = blueprint.network([blueprint.features], [*layers, Layer(1)], copies=num_values)
        self.parts: list[Part] = [self._net]
        self._scratch = blueprint.scratch()

    def value(self, x: Buffer) -> Buffer:
        """V, (P, 1, B, G)."""
        values = self._net.forward([x])
        if self.num_values == 1:
            return values
        columns = self._scratch("value", x.num_rows, self.num_values)
        ops.heads_last(values, out=columns)
        return columns

    def predict(self, x: Buffer, actions: Actions) -> Buffer:
        """V: what is regressed on the return."""
        return self.value(x)

    def backward(self, x: Buffer, actions: Actions) -> None:
        """From the gradient of the last prediction to those of the parameters."""
        if self.num_values > 1:
            columns = self._scratch("value", x.num_rows, self.num_values)
            ops.heads_last.backward(self._net.rows(x.num_rows), out=columns)
        self._net.backward([x])


class BranchingCritic:
    """Q(s, a) = V(s) + sum of A_h(s, a_h), each with mean zero under the policy: for PPO.

    So V is the value of the policy. `BranchingValue`, which DQN and SAC learn, has the same network
    and centers by the maximum. A continuous head is cut into equally wide bins here; its advantage
    is constant on each.

    Args:
        num_bins: Bins of each continuous head.
    """

    num_values = 1
    bends: Mapping[str, bool] = {}
    adds = False
    """Whether something has written the gradient of features before the dueling network does."""

    def __init__(self, blueprint: Blueprint, num_bins: int) -> None:
        checked_count("branch_width of a branching critic", blueprint.branch_width)
        self.num_bins = num_bins
        self.table = binned(blueprint.layout, num_bins)
        self.net = Dueling(blueprint, [blueprint.features], self.table.total)
        self.parts: list[Part] = [*self.net.parts]
        self._scratch = blueprint.scratch()

    def value(self, x: Buffer) -> Buffer:
        """V, (P, 1, B, 1)."""
        return self.net.value([x])

    def predict(self, x: Buffer, actions: Actions) -> Buffer:
        """Q of the actions taken, (P, 1, B, 1)."""
        value, y, _ = self.net.forward([x])
        q = self._scratch("q", x.num_rows)
        self.combine(value, self.chosen(y, actions), x, out=q)
        return q

    def backward(self, x: Buffer, actions: Actions) -> None:
        """From the gradient of the last prediction to those of the parameters."""
        value, y = self.net.rows(x.num_rows)
        chosen, q = self._advantage(x.num_rows), self._scratch("q", x.num_rows)
        self.combine_backward(value, chosen, x, out=q)
        ops.advantages.backward(y, *self._centered_at(actions), table=self.table, out=chosen)
        self.net.backward([x], add=self.adds and x.has_gradient)

    def combine(self, value: Buffer, advantage: Buffer, x: Buffer, *, out: Buffer) -> None:
        """Writes Q, (P, 1, B, 1): V plus the sum of the advantages."""
        ops.total(value, advantage, adds_up=True, out=out)

    def combine_backward(self, value: Buffer, advantage: Buffer, x: Buffer, *, out: Buffer) -> None:
        """From the gradient of Q to those of V, of advantages and of a mixer's parameters."""
        ops.total.backward(value, advantage, adds_up=True, out=out)

    def chosen(self, y: Buffer, actions: Actions) -> Buffer:
        """The centered advantages of the options taken, (P, 1, B, H)."""
        chosen = self._advantage(y.num_rows)
        ops.advantages(y, *self._centered_at(actions), table=self.table, out=chosen)
        return chosen

    def q_gradient(self, x: Buffer, chosen: Buffer | None) -> Buffer | None:
        """How much advantages count in Q, at those chosen or at zero; None: all count in full."""
        return None

    def mixture_weights(self, x: Buffer) -> Buffer | None:
        """Of a mixer at given states, if there is one."""
        return None

    def _advantage(self, rows: int) -> Buffer:
        return self._scratch("advantage", rows, self.table.num_heads)

    def _centered_at(
        self, actions: Actions
    ) -> tuple[Buffer | None, None, Buffer | None, Buffer | None]:
        """The options taken, and the probabilities under which advantages have mean zero."""
        return actions.option, None, actions.probs, actions.in_use


class MixingCritic(BranchingCritic):
    """Q(s, a) = V(s) + f(A_1 ... A_H | s), increasing in each advantage.

    Args:
        num_bins: Bins of each continuous head.
        width: Hidden units of the mixer.
        bends: How its units bend and its weights are made positive, as `ops.mix` has it.
    """

    adds = True

    def __init__(
        self, blueprint: Blueprint, num_bins: int, width: int, bends: Mapping[str, bool]
    ) -> None:
        super().__init__(blueprint, num_bins)
        self.bends = bends
        heads = self.table.num_heads
        layer = Layer((heads + 1) * width, parts=(heads * width, width))
        self._mixer = blueprint.network([blueprint.features], [layer])
        self.parts.append(self._mixer)

    def combine(self, value: Buffer, advantage: Buffer, x: Buffer, *, out: Buffer) -> None:
        """Writes Q, (P, 1, B, 1): V plus the mixture of the advantages."""
        ops.mix(value, advantage, self._mixer.forward([x]), **self.bends, out=out)

    def combine_backward(self, value: Buffer, advantage: Buffer, x: Buffer, *, out: Buffer) -> None:
        """From the gradient of Q to those of V, of advantages and of the mixer's parameters."""
        ops.mix.backward(value, advantage, self._mixer.rows(x.num_rows), **self.bends, out=out)
        self._mixer.backward([x])

    def q_gradient(self, x: Buffer, chosen: Buffer | None) -> Buffer:
        """How much advantages count in Q, at those chosen or at zero."""
        at = self._scratch("at", x.num_rows, self.table.num_heads)
        ops.fill(at, 0.0) if chosen is None else ops.copy(chosen, out=at)
        gradient = self._scratch("gradient", x.num_rows, self.table.num_heads)
        ops.mix_gradient(at, self._mixer.forward([x]), **self.bends, out=gradient)
        return gradient

    def mixture_weights(self, x: Buffer) -> Buffer:
        """Of the mixer at given states."""
        return self._mixer.forward([x])


def binned(layout: Layout, num_bins: int) -> HeadTable:
    """The heads of a layout with continuous ones cut into bins, their options side by side."""
    sizes = [n or num_bins for n in layout.options]
    conditions = [
        c if c is None or layout.options[c.head] else _on_bins(c, num_bins)
        for c in layout.conditions
    ]
    places = [(0, first) for first in starts(sizes)]
    return HeadTable(sizes, conditions, places, device=layout.device)


def _on_bins(condition: When, num_bins: int) -> When | None:
    """A condition on a number as one on its bins: those whose center meets it, or none if none."""

    def first_above(edge: float) -> float:
        return math.ceil((edge + 1.0) * num_bins / 2.0 - 0.5) if math.isfinite(edge) else edge

    low, high = first_above(condition.low), first_above(condition.high)
    return When(condition.head, low, high) if low < high else None


@operation(compiled=False)
def critic_options(unit: Tensor, *, table: HeadTable, bins: int) -> Tensor:
    """Actions in unit form as options of a branching critic, (P, 1, B, H)."""
    discrete, numbers = table.split(unit)
    cut = ((numbers + 1.0) * (0.5 * bins)).floor().clamp(0.0, bins - 1.0)
    return torch.cat([discrete, cut], dim=-1)


@operation(compiled=False)
def option_probs(
    y: Tensor, free: Tensor | None, mask: Tensor | None, *, table: HeadTable, bins: int
) -> Tensor:
    """How likely a policy is to choose each option of a branching critic, (P, 1, B, total)."""
    heads = distribution_of(table, y.detach(), None if free is None else free.detach(), mask)
    parts = []
    if heads.log_probs is not None:
        parts.append(table.flatten(heads.option_probs()))
    if table.continuous:
        parts.append(heads.bin_probs(bins).flatten(-2))
    return torch.cat(parts, dim=-1)
