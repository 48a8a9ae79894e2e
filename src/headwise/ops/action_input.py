"""Actions as inputs of networks, discrete heads one-hot; and counterfactual queries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from headwise.ops.core import core
from headwise.ops.functions import constant
from headwise.ops.heads import HeadTable
from headwise.ops.operation import operation


class Embedding:
    """How an action becomes a row of inputs.

    A discrete head is one-hot, a continuous one its unit value, and a discrete one whose options
    are the bins of an interval the unit value of its bin. A head that an action does not use is all
    zeros: its value means nothing.

    Args:
        ordered: Which discrete heads have bins for options, (D,).
        order: The heads in the order of their columns; None: as they are.
    """

    def __init__(
        self, table: HeadTable, ordered: Sequence[bool], order: Sequence[int] | None = None
    ) -> None:
        self.table = table
        self.order = tuple(order if order is not None else range(table.num_heads))
        self.first: dict[int, int] = {}
        """The first column of each head."""
        heads: list[int] = []
        values: list[int] = []
        scales: list[float] = []
        shifts: list[float] = []
        for head in self.order:
            self.first[head] = len(heads)
            options = table.options[head]
            if options and not ordered[head]:
                heads += [head] * options
                values += range(options)
                scales += [1.0] * options
                shifts += [0.0] * options
            else:
                heads.append(head)
                values.append(-1)
                scales.append(2.0 / (options - 1.0) if options > 1 else 1.0)
                shifts.append(-1.0 if options > 1 else 0.0)
        self.heads, self.values = tuple(heads), tuple(values)
        """Whose column it is, and which option it stands for; -1 for a number."""
        self.scales, self.shifts = tuple(scales), tuple(shifts)
        self.size = len(heads)
        """Columns (Z)."""
        self.core = core.Embedding(heads, values, scales, shifts, table.core)

    @cached_property
    def _owner(self) -> Tensor:
        return torch.tensor(self.heads, device=self.table.device)

    def numbers(self, action: Tensor, options: Tensor | None) -> Tensor:
        """The columns (..., Z), all in use.

        Args:
            action: In unit form, (..., H).
            options: Weights of all options (..., total) in the place of those of the action.
        """
        own = action.index_select(-1, self._owner)
        values = constant(tuple(map(float, self.values)), action)
        scaled = own * constant(self.scales, action) + constant(self.shifts, action)
        hot = (own == values).to(action.dtype)
        result = torch.where(values >= 0.0, hot, scaled)
        if options is None:
            return result
        columns, starts = list(result.unbind(-1)), _starts(self.table)
        for z, (head, value) in enumerate(zip(self.heads, self.values, strict=True)):
            if value >= 0:
                columns[z] = options[..., starts[head] + value]
            elif self.table.options[head]:  # the mean number of its bin
                weights = options[..., starts[head] : starts[head] + self.table.options[head]]
                number = torch.arange(weights.shape[-1], device=weights.device, dtype=weights.dtype)
                columns[z] = (weights * number).sum(-1) * self.scales[z] + self.shifts[z]
        return torch.stack(columns, dim=-1)

    def used(self, columns: Tensor, in_use: Tensor | None) -> Tensor:
        """The columns, with zeros for heads not in use (..., H)."""
        return columns if in_use is None else columns * in_use.index_select(-1, self._owner)


def _starts(table: HeadTable) -> list[int]:
    return [sum(table.sizes[:d]) for d in range(len(table.sizes))]


@operation()
def embed(
    action: Tensor, options: Tensor | None, in_use: Tensor | None, *, embedding: Embedding
) -> Tensor:
    """Actions as rows of inputs, (P, 1, B, Z); gradients flow through numbers.

    Args:
        action: In unit form, (P, 1, B, H).
        options: Weights of all options (P, 1, B, total) in the place of the action's own, so that
            gradients reach them.
        in_use: Which heads are in use, (P, 1, B, H), if not all always are.
        embedding: How.
    """
    return embedding.used(embedding.numbers(action, options), in_use)


@operation()
def relax(
    log_probs: Tensor, noise: Tensor, softness: Tensor, *, table: HeadTable
) -> tuple[Tensor, Tensor]:
    """One-hot options (P, 1, B, total) with the gradient of a Gumbel-softmax, and which they are.

    Args:
        log_probs: Of all options, (P, 1, B, total).
        noise: Uniform numbers, (P, 1, B, D * K).
        softness: The temperature of the softmax, (P, 1, 1, 1).
        table: The discrete heads.
    """
    padded = table.masked(table.pad(log_probs), None)
    uniform = torch.unflatten(noise, -1, padded.shape[-2:]).clamp(1e-6, 1.0 - 1e-6)
    gumbel = -torch.log(-torch.log(uniform))
    soft = torch.softmax((padded + gumbel) / softness.unsqueeze(-1), dim=-1)
    hard: Tensor = _StraightThrough.apply(soft)  # type: ignore[no-untyped-call]
    return table.flatten(hard), hard.detach().argmax(-1).to(hard.dtype)


class _StraightThrough(torch.autograd.Function):
    """One-hot options whose gradient is that of the softened ones."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, soft: Tensor) -> Tensor:
        return torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1.0)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> Tensor:
        return grads[0]


# --- counterfactuals ------------------------------------------------------------------------------


class Queries:
    """Counterfactuals: options of one head that a state is evaluated at, the other heads as drawn.

    States take turns with the discrete heads. They come in no order, so the mean over some of them
    is on average that over all. Where heads have very many options fewer states are evaluated, but
    at least one for every head.

    Args:
        rows: States of a batch (B).
        most: Options of a state on average at the most: the cost of an update.
    """

    def __init__(self, table: HeadTable, rows: int, most: int = 16) -> None:
        heads = len(table.discrete)
        turns = max(1, int(rows / heads * min(1.0, most * heads / table.total)))
        self.rows: list[int] = []
        """The state of each query (Q)."""
        self.heads: list[int] = []
        self.options: list[int] = []
        for turn in range(turns * heads):
            head = turn % heads
            self.rows += [turn % rows] * table.sizes[head]
            self.heads += [head] * table.sizes[head]
            self.options += range(table.sizes[head])
        starts = _starts(table)
        self.columns = [starts[h] + k for h, k in zip(self.heads, self.options, strict=True)]
        """Where each query's answer belongs among all options."""
        self.stands_for = rows / turns
        """How many states each answer stands for."""
        self.table = table
        self.core = core.Queries(self.rows, self.heads, self.options, self.columns, self.stands_for)

    @property
    def count(self) -> int:
        """How many there are (Q)."""
        return len(self.rows)

    @cached_property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Rows, heads, options and columns, (Q,) each."""
        every = self.rows, self.heads, self.options, self.columns
        rows, heads, options, columns = (torch.tensor(x, device=self.table.device) for x in every)
        return rows, heads, options, columns


@operation()
def ask(x: Tensor, *, queries: Queries, substitute: bool) -> Tensor:
    """Rows (P, 1, B, W) once for each query, (P, 1, Q, W).

    Args:
        x: Of each state.
        queries: Which states are evaluated.
        substitute: Whether rows are actions, in which a query puts its option.
    """
    rows, heads, options, _ = queries.tensors
    result = x.detach().index_select(-2, rows)
    if not substitute:
        return result
    own = torch.arange(x.shape[-1], device=x.device) == heads.unsqueeze(-1)
    return torch.where(own, options.unsqueeze(-1).to(x.dtype), result)


@operation()
def expected_value(
    log_probs: Tensor, values: Tensor, bonus: Tensor | None, *, queries: Queries
) -> Tensor:
    """What each discrete head may expect while the other heads are as drawn, summed, (P, 1, B, 1).

    Its gradient is that of the expected value, on average over draws and states.

    Args:
        log_probs: Of all options, (P, 1, B, total).
        values: The critics' values of the queries, of which the least counts, (P, N, Q, 1).
        bonus: What is added to it, summed over columns, (P, 1, Q, any), if anything.
        queries: Which options were evaluated.
    """
    rows, _, _, columns = queries.tensors
    answers = values.detach().amin(1, keepdim=True)[..., 0]
    answers = answers if bonus is None else answers + bonus.detach().sum(-1)
    # As a table of all rows and options: a sum over few numbers, whose order is always the same.
    every = torch.zeros_like(log_probs)
    every[..., rows, columns] = answers * queries.stands_for
    return (log_probs.exp() * every).sum(-1, keepdim=True)
