"""An action spec as tensors: which columns are choices, which options exist, who is in use when.

A learner's action is one float32 tensor (..., H): the number of an option for a Choice, and a
number for a Range. Heads of unequal size are padded to (H, K) with a mask, so that one kernel
serves them all.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from headwise.factorizations.parts.ranges import RangeDistribution
from headwise.population import even_rows
from headwise.spaces import ActionSpec

NEVER = -1e30
"""The logit of an option that may not be chosen: its probability is exactly zero, and no gradient
or product with it is ever NaN, as it would be with minus infinity. It is far below any logit of a
member that has not diverged, however large observations are; kernels have the same number."""

_BLOCK = 256  # of the kernel


class Layout:
    """The tensors that follow from an action spec."""

    def __init__(self, spec: ActionSpec, device: torch.device | str = "cpu") -> None:
        self.spec = spec
        self.device = torch.device(device)
        is_choice = torch.as_tensor(np.array(spec.is_choice))
        self.is_choice = is_choice.to(device)
        """Which heads are Choices, (H,)."""
        self.choices = torch.nonzero(is_choice).flatten().to(device)
        """Columns of the Choice heads, (D,)."""
        self.ranges = torch.nonzero(~is_choice).flatten().to(device)
        """Columns of the Range heads, (C,)."""
        self.choice_of = {int(head): d for d, head in enumerate(self.choices)}
        """The place of each Choice head among the choices."""
        self.range_of = {int(head): c for c, head in enumerate(self.ranges)}
        """The place of each Range head among the ranges."""
        self.num_choices = spec.num_choices
        self.num_ranges = spec.num_ranges
        self.num_heads = spec.num_heads
        self.sizes = [n for n in spec.cardinalities if n > 0]
        """Options of each Choice head (D numbers)."""
        self.max_options = max(self.sizes, default=0)
        self.total_options = sum(self.sizes)
        mask = torch.as_tensor(np.array(spec.option_mask))[is_choice]
        self.mask = mask.to(device)
        """Which padded options exist, (D, K)."""
        position = (mask.flatten().cumsum(0) - 1).clamp_min(0).view_as(mask)
        self._position = torch.where(mask, position, 0).flatten().to(device)
        self.bounds = torch.tensor([0, *self.sizes]).cumsum(0).int().to(device)
        """Where each Choice head's options begin and end among all, (D + 1,)."""
        self._equal = len(set(self.sizes)) <= 1
        self._absent = ~self.mask
        logs = [math.log(n) if n else 0.0 for n in spec.cardinalities]
        self._log_sizes = torch.tensor(logs, device=device)
        # Columns come as choices, then ranges; this puts them back into the order of the spec.
        order = torch.cat([self.choices, self.ranges])
        self.in_order = bool((order == torch.arange(self.num_heads, device=device)).all())
        self.restore = torch.argsort(order)
        self._plan_conditions()

    def pad(self, flat: Tensor) -> Tensor:
        """Numbers for all options (..., total) as (..., D, K); what does not exist is arbitrary."""
        if not self._equal:
            flat = flat.index_select(-1, self._position)
        return flat.view(*flat.shape[:-1], self.num_choices, self.max_options)

    def masked(self, padded: Tensor, legal: Tensor | None = None) -> Tensor:
        """Logits (..., D, K) with NEVER wherever no option exists, or none is legal."""
        if legal is not None:
            padded = padded.masked_fill(~legal, NEVER)
        return padded if self._equal else padded.masked_fill(self._absent, NEVER)

    def largest_entropy(self, legal: Tensor | None = None) -> Tensor:
        """The most entropy that each head can have, (H,), and zero for a Range, which has no most.

        Given which options are legal, (..., D, K), it is the logarithm of their number, (..., H).
        """
        if legal is None:
            return self._log_sizes
        # A head that is not in use may have no legal option at all.
        of_choices = (legal & self.mask).sum(-1).clamp_min(1).log()
        none = torch.zeros(*of_choices.shape[:-1], self.num_ranges, device=self.device)
        return self.columns(of_choices, none)

    def columns(self, choices: Tensor | None, ranges: Tensor | None) -> Tensor:
        """Columns of the choices (..., D) and of the ranges (..., C) in the order of the spec."""
        parts = [part for part in (choices, ranges) if part is not None]
        joined = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return joined if self.in_order else joined.index_select(-1, self.restore)

    def choice_columns(self, action: Tensor) -> Tensor:
        """The options of an action, as indices (..., D)."""
        return self.choice_numbers(action).long()

    def choice_numbers(self, action: Tensor) -> Tensor:
        """The options of an action as it has them, (..., D)."""
        return self._pick(action, self.choices, self.num_choices, leading=True)

    def range_columns(self, action: Tensor) -> Tensor:
        """The numbers of an action (..., C)."""
        return self._pick(action, self.ranges, self.num_ranges, leading=False)

    def _pick(self, action: Tensor, columns: Tensor, count: int, *, leading: bool) -> Tensor:
        if self.in_order:
            return action[..., :count] if leading else action[..., self.num_heads - count :]
        return action.index_select(-1, columns)

    # --- heads that are in use only under a condition ---------------------------------------------

    def _plan_conditions(self) -> None:
        chains = []
        for condition in self.spec.conditions:
            chain = []
            while condition is not None:
                chain.append(condition)
                condition = self.spec.conditions[condition.head]
            chains.append(chain)
        depth = max(map(len, chains))
        self.is_conditional = depth > 0
        """Whether some head is in use only when others have certain values."""
        rows = [[(c.head, c.low, c.high) for c in chain] for chain in chains]
        padded = [row + [(0, -np.inf, np.inf)] * (depth - len(row)) for row in rows]
        table = torch.tensor(padded, dtype=torch.float64).view(self.num_heads, depth, 3)
        self._parents = table[..., 0].long().to(self.device)
        self._lows = table[..., 1].float().to(self.device)
        self._highs = table[..., 2].float().to(self.device)

    def active(self, action: Tensor) -> Tensor:
        """Which heads are in use in each action, float32 (..., H) of zeros and ones."""
        if not self.is_conditional:
            return torch.ones_like(action)
        if action.device.type == "cuda":
            return self._active_kernel(action)
        parents = action[..., self._parents]  # (..., H, depth): every ancestor's value
        return ((self._lows <= parents) & (parents < self._highs)).all(-1).float()

    def _active_kernel(self, action: Tensor) -> Tensor:
        """`active` as one kernel, also for actions that are whole numbers."""
        from headwise.factorizations.kernels.layout import in_use

        action = even_rows(action)
        if action.stride(-1) != 1:
            action = action.contiguous()
        out = torch.empty(action.shape, device=action.device)
        in_use[(-(-out.numel() // _BLOCK),)](
            action, action.stride(-2), self._parents, self._lows, self._highs, out,
            out.numel(), self.num_heads, self._parents.shape[-1], BLOCK=_BLOCK,
        )  # fmt: skip
        return out

    def used(self, columns: Tensor, action: Tensor) -> Tensor:
        """Numbers for every head (..., H), with zero where the action does not use the head."""
        return columns * self.active(action) if self.is_conditional else columns

    def activity(
        self, log_probs: Tensor | None, ranges: RangeDistribution | None = None
    ) -> Tensor | None:
        """How likely each head is to be in use, (..., H); None where all always are.

        Args:
            log_probs: Log-probabilities of the options, (..., D, K).
            ranges: The distribution of the Range heads. Without it, a condition on a Range is taken
                as met.
        """
        if not self.is_conditional:
            return None
        parts: list[Tensor | float] = []
        for condition in self.spec.conditions:
            if condition is None:
                parts.append(1.0)
                continue
            chance: Tensor | float = 1.0
            if condition.head in self.choice_of and log_probs is not None:
                low = max(int(np.ceil(condition.low)), 0)
                high = int(min(np.ceil(condition.high), self.max_options))
                chance = log_probs[..., self.choice_of[condition.head], low:high].exp().sum(-1)
            elif condition.head in self.range_of and ranges is not None:
                chance = _mass(ranges, self.range_of[condition.head], condition.low, condition.high)
            parts.append(parts[condition.head] * chance)
        known = [part for part in parts if isinstance(part, Tensor)]
        if not known:
            return None
        return torch.stack(
            [p if isinstance(p, Tensor) else torch.full_like(known[0], p) for p in parts], dim=-1
        )


def _mass(ranges: RangeDistribution, column: int, low: float, high: float) -> Tensor:
    """The probability that one Range head's unit value lies in [low, high), (...)."""
    first, second = ranges.tensors()
    one = ranges.rebuilt(first[..., column : column + 1], second[..., column : column + 1])
    edges = torch.tensor([min(max(edge, -0.999999), 0.999999) for edge in (low, high)])
    below = one.cdf(edges.to(first.device)).squeeze(-2)
    upper = below[..., 1] if high < 1.0 else torch.ones_like(below[..., 1])
    return upper - below[..., 0] if low > -1.0 else upper
