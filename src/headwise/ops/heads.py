"""The heads of an action as operations know them, and where a network's output has each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from headwise.ops.core import core

if TYPE_CHECKING:
    from headwise.ops.links import Links

NEVER = -1e30
"""The logit of an option that may not be chosen: its probability is exactly zero, and no gradient
or product with it is ever NaN, as it would be with minus infinity. It is far below any logit of a
member that has not diverged, however large observations are."""

Kind: TypeAlias = Literal["squashed", "clipped", "beta"]
"""The distribution of a continuous head: tanh of a Gaussian, a Gaussian clipped on its way to the
environment, or a Beta distribution stretched to [-1, 1]."""


class When(NamedTuple):
    """A head is in use when another is and its value lies in `[low, high)`."""

    head: int
    low: float
    high: float


class HeadTable:
    """The heads of an action, and where each has its numbers in a network's output.

    Discrete heads come first, so that the columns of either kind are views of an action's. A
    discrete head has a column for each of its options; a continuous one its mean and, where that
    depends on the state, its free standard deviation in the next column (the two shapes of a Beta
    distribution). An action is a row (H): the number of an option, or a real number.

    Args:
        options: Options of each head, 0 for a continuous one.
        conditions: When each head is in use; None means always.
        places: The copy and the first column of each head's numbers.
        stack: Copies that belong together, where heads have copies of their own: head h of network
            c (a twin, say) is copy `c * stack + places[h][0]`.
        kind: The distribution of continuous heads.
        state_std: Whether their standard deviations are outputs, or parameters.
        log_std: The least and the largest logarithm of a standard deviation.
        device: Where the tensors of definitions are.
    """

    def __init__(
        self,
        options: Sequence[int],
        conditions: Sequence[When | None],
        places: Sequence[tuple[int, int]],
        *,
        stack: int = 1,
        kind: Kind = "squashed",
        state_std: bool = False,
        log_std: tuple[float, float] = (-3.0, 1.0),
        device: torch.device | str = "cpu",
    ) -> None:
        self.options = tuple(options)
        self.num_heads = len(self.options)
        """Heads (H)."""
        self.conditions = tuple(conditions)
        self.places = tuple(places)
        self.stack = stack
        self.kind = kind
        self.state_std = state_std
        self.log_std = log_std
        self.device = torch.device(device)
        self.discrete = [h for h, n in enumerate(options) if n]
        """The discrete heads (D)."""
        self.continuous = [h for h, n in enumerate(options) if not n]
        """The continuous heads (C)."""
        self.sizes = [n for n in options if n]
        self.total = sum(self.sizes)
        """Options of all discrete heads, side by side in masks and log-probabilities."""
        assert self.discrete == list(range(len(self.discrete))), "discrete heads come first"
        self.is_conditional = any(c is not None for c in conditions)
        self.links: Links | None = None
        """Which options discrete heads have, given those of others, where that is a tree."""
        self.order = _parents_first(self.conditions)
        """The heads, each after the one that it depends on."""
        self.core = core.HeadTable(
            self.options,
            self.order,
            [-1 if c is None else c.head for c in conditions],
            [0.0 if c is None else c.low for c in conditions],
            [0.0 if c is None else c.high for c in conditions],
            [copy for copy, _ in places],
            [column for _, column in places],
            stack,
            kind == "clipped",
            state_std,
            *log_std,
        )

    @property
    def num_uniforms(self) -> int:
        """Uniform numbers that an action takes: one for each discrete head, then the others'."""
        each = 16 if self.kind == "beta" else 1
        return len(self.discrete) + each * len(self.continuous)

    # --- tensors of definitions -----------------------------------------------------------------

    @cached_property
    def widest(self) -> int:
        """The most options of a head (K)."""
        return max(self.sizes, default=0)

    @cached_property
    def exists(self) -> Tensor:
        """Which padded options there are, (D, K)."""
        sizes = torch.tensor(self.sizes, device=self.device).unsqueeze(-1)
        return torch.arange(self.widest, device=self.device) < sizes

    @cached_property
    def _flat(self) -> Tensor:
        """Where each padded option is among all options, (D * K,)."""
        count = self.exists.flatten().cumsum(0) - 1
        return torch.where(self.exists.flatten(), count, 0)

    @cached_property
    def _padded(self) -> Tensor:
        """Where each option is among padded ones, (total,)."""
        return self.exists.flatten().nonzero().flatten()

    @cached_property
    def log_sizes(self) -> Tensor:
        """The largest entropy of each head, (H,); zero for a continuous one, which has none."""
        logs = [math.log(n) if n else 0.0 for n in self.options]
        return torch.tensor(logs, device=self.device)

    @cached_property
    def is_continuous(self) -> Tensor:
        """Ones for continuous heads and zeros for others, (H,)."""
        return torch.tensor([float(n == 0) for n in self.options], device=self.device)

    def pad(self, flat: Tensor) -> Tensor:
        """Numbers of all options (..., total) as (..., D, K); what does not exist is arbitrary."""
        picked = flat.index_select(-1, self._flat)
        return picked.view(*flat.shape[:-1], len(self.discrete), self.widest)

    def flatten(self, padded: Tensor) -> Tensor:
        """The inverse of `pad`, (..., total)."""
        return padded.flatten(-2).index_select(-1, self._padded)

    def masked(self, padded: Tensor, mask: Tensor | None) -> Tensor:
        """Numbers (..., D, K) with NEVER where there is no option, or the mask forbids it."""
        allowed = self.exists if mask is None else self.allowed(mask)
        return padded.masked_fill(~allowed, NEVER)

    def allowed(self, mask: Tensor) -> Tensor:
        """A mask of all options (..., total) as (..., D, K); what does not exist is forbidden."""
        return (self.pad(mask) > 0.0) & self.exists

    def split(self, action: Tensor) -> tuple[Tensor, Tensor]:
        """The columns of the discrete heads (..., D), and of the continuous ones (..., C)."""
        count = len(self.discrete)
        return action[..., :count], action[..., count:]

    def join(self, discrete: Tensor | None, continuous: Tensor | None) -> Tensor:
        """The inverse of `split`, (..., H)."""
        parts = [part for part in (discrete, continuous) if part is not None]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)

    def outputs_of(self, y: Tensor, head: int, width: int) -> Tensor:
        """The numbers of a head (P, N, B, width) in outputs (P, N * stack, B, W)."""
        copy, column = self.places[head]
        own = y[:, copy :: self.stack] if y.shape[1] > 1 or self.stack > 1 else y
        return own[..., column : column + width]

    def scores(self, y: Tensor) -> Tensor:
        """The numbers of all options (P, N, B, D, K) in outputs; what does not exist is zero."""
        heads = [
            torch.nn.functional.pad(self.outputs_of(y, h, n), (0, self.widest - n))
            for h, n in enumerate(self.options)
            if n
        ]
        return torch.stack(heads, dim=-2)

    def in_use(self, action: Tensor) -> Tensor:
        """Which heads each action in unit form uses, zeros and ones (..., H)."""
        columns = [torch.ones_like(action[..., 0])] * self.num_heads
        for head in self.order:
            condition = self.conditions[head]
            if condition is not None:
                value = action[..., condition.head]
                met = (condition.low <= value) & (value < condition.high)
                columns[head] = columns[condition.head] * met
        return torch.stack(columns, dim=-1)


def _parents_first(conditions: Sequence[When | None]) -> list[int]:
    order: list[int] = []

    def visit(head: int) -> None:
        condition = conditions[head]
        if condition is not None and condition.head not in order:
            visit(condition.head)
        if head not in order:
            order.append(head)

    for head in range(len(conditions)):
        visit(head)
    return order
