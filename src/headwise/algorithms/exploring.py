"""Epsilon-greedy choice: now and then, a head takes any of its options."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.algorithms.schedules import linear
from headwise.factorizations.parts.heads import pick_options
from headwise.factorizations.parts.layout import NEVER, Layout
from headwise.population import Clock, along, even_rows

_FEW, _BLOCK = 256, 128  # of the kernel: options that one thread goes through, heads at a time


class Exploring:
    """How often heads explore, and what they do then.

    Args:
        layout: The heads, all of them Choices.
        start: How often each member's heads explore in the beginning, (P,).
        end: How often in the end, (P,).
        span: Environment steps over which the one becomes the other.
    """

    def __init__(self, layout: Layout, start: Tensor, end: Tensor, span: float) -> None:
        self.layout = layout
        self.steps = Clock(layout.device)
        """Environment steps that each member has taken."""
        self._start, self._end, self._span = start, end, span
        self._equal = _equal_chances(layout.mask)
        # The chance of each of n options, for n from 0. Made on the CPU, so that all devices choose
        # between the same numbers.
        count = torch.arange(layout.max_options + 1)
        these = torch.arange(layout.max_options) < count.unsqueeze(-1)
        self._chances = _equal_chances(these)[..., 0].exp().to(layout.device)

    @property
    def epsilon(self) -> Tensor:
        """How often a head takes an option at random now, (P,)."""
        return linear(self._start, self._end, self.steps.now, self._span)

    def choose(self, best: Tensor, uniform: Tensor, legal: Tensor | None = None) -> Tensor:
        """The best options (P, E, H), or any, by uniform numbers (P, 2, E, H)."""
        if best.device.type == "cuda" and self.layout.max_options <= _FEW:
            return self._kernel(best, uniform, legal)
        coin, option = uniform.unbind(-3)
        equal = self._equal if legal is None else _equal_chances(self.layout.mask & legal)
        anything = pick_options(equal.expand(*best.shape, equal.shape[-1]), option)
        return torch.where(coin < along(self.epsilon, coin), anything, best)

    def _kernel(self, best: Tensor, uniform: Tensor, legal: Tensor | None) -> Tensor:
        """`choose` as one kernel."""
        from headwise.algorithms.kernels.dqn import explore

        layout, out = self.layout, torch.empty_like(best, memory_format=torch.contiguous_format)
        clock, mask, mask_row = self.steps.now, layout.bounds, 0
        assert isinstance(clock, Tensor)
        if legal is not None:
            mask = even_rows(legal.flatten(-2))
            mask_row = mask.stride(-2)
        explore[(-(-out.numel() // _BLOCK),)](
            best.contiguous(), uniform.contiguous(), self._chances, layout.bounds, mask, mask_row,
            self._start, self._end, clock, float(self._span), out,
            out.numel(), out.shape[-2:].numel(), layout.num_heads, layout.max_options,
            LEGAL=legal is not None, BLOCK=_BLOCK,
        )  # fmt: skip
        return out


def _equal_chances(may: Tensor) -> Tensor:
    """Log-probabilities of options (..., K) that are all as likely, and the others impossible."""
    return torch.where(may, 0.0, NEVER).log_softmax(-1)
