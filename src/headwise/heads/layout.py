"""The action as a learner sees it, and the way there and back.

Discrete heads come first; or there is one discrete head of all joint actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from headwise.heads.joint_actions import JointActions
from headwise.ops import HeadTable, When
from headwise.ops.links import HeadLink, Links
from headwise.spaces import ActionSpec, Choice

Which = Literal["all", "discrete", "continuous"]


class Layout:
    """The heads of an action in the learner's order.

    An action of the learner is a row of float32: the number of an option for a discrete head, and
    in unit form a number in [-1, 1] for a continuous one. Discrete heads come first.

    Args:
        spec: The action, as the environment has it or with continuous heads cut into bins.
        joint: Whether the learner sees one discrete head of all joint actions.
    """

    def __init__(
        self, spec: ActionSpec, device: torch.device | str = "cpu", *, joint: bool = False
    ) -> None:
        self.spec = spec
        self.device = torch.device(device)
        self.joint = JointActions(spec, self.device) if joint else None
        seen = ActionSpec.of(joint=Choice(self.joint.size)) if self.joint else spec
        order = [h for h, n in enumerate(seen.cardinalities) if n]
        order += [h for h, n in enumerate(seen.cardinalities) if not n]
        self.names = tuple(seen.names[h] for h in order)
        self.options = tuple(seen.cardinalities[h] for h in order)
        """Options of each head, 0 for a continuous one."""
        heads = [seen.heads[h] for h in order]
        self.ordered = tuple(isinstance(h, Choice) and h.ordered for h in heads)
        """Which heads have the bins of an interval for options."""
        conditions = [seen.conditions[h] for h in order]
        self.conditions = tuple(
            None if c is None else When(order.index(c.head), c.low, c.high) for c in conditions
        )
        self.num_heads = len(order)
        self.num_discrete = sum(n > 0 for n in self.options)
        self.num_continuous = self.num_heads - self.num_discrete
        self.sizes = tuple(n for n in self.options if n)
        self.total = sum(self.sizes)
        """Options of all discrete heads."""
        self.is_conditional = any(c is not None for c in self.conditions)
        back = [order.index(h) for h in range(self.num_heads)]
        self.places = (0,) * spec.num_heads if joint else tuple(back)
        """Which of the learner's heads each head of the spec is, or is a part of."""
        self._order, self._back = (torch.tensor(x, device=self.device) for x in (order, back))
        self._is_same = order == list(range(self.num_heads))
        rows = [h for h in order if seen.cardinalities[h]] + list(range(len(order), seen.mask_rows))
        self._exists = torch.as_tensor(
            seen.full_mask[rows].ravel().nonzero()[0], device=self.device
        )
        self.mask_width = len(self._exists)
        """Columns of a mask: all options, and the tables that the environment gives."""
        self.order = tuple(back[h] for h in seen.order)
        """The heads as the spec has them, but each after those that it depends on."""
        self.links = self._links(seen, back)
        """Which options heads have, given those of others; None where that makes no difference."""

    def table(
        self,
        places: Sequence[tuple[int, int]],
        which: Which = "all",
        *,
        conditional: bool = True,
        **settings: Any,
    ) -> HeadTable:
        """The heads, or one kind of them alone, with where their numbers are (`HeadTable`).

        Conditions on heads of the other kind are not carried over; none is if the table is not to
        be `conditional`.
        """
        kept = {
            "all": range(self.num_heads),
            "discrete": range(self.num_discrete),
            "continuous": range(self.num_discrete, self.num_heads),
        }[which]
        conditions = [self.conditions[h] for h in kept]
        own = [
            When(kept.index(c.head), c.low, c.high)
            if conditional and c and c.head in kept
            else None
            for c in conditions
        ]
        options = [self.options[h] for h in kept]
        return HeadTable(options, own, places, device=self.device, **settings)

    def bare_table(self, *, conditional: bool = True) -> HeadTable:
        """The heads without places: for operations that read their sizes and conditions alone."""
        return self.table([(0, 0)] * self.num_heads, conditional=conditional)

    def _links(self, spec: ActionSpec, back: Sequence[int]) -> Links | None:
        if not spec.links:
            return None
        first, links = self.total, []
        for link in spec.links:
            parents = tuple(back[p] for p in link.parents)
            links.append(HeadLink(back[link.child], parents, first, link.table))
            if link.table is None:
                first += link.num_rows(spec.cardinalities) * spec.cardinalities[link.child]
        return Links(self.bare_table(), links, self.order)

    def side_by_side(self, start: int = 0) -> list[tuple[int, int]]:
        """Places of the options of all discrete heads in one output, one head after another."""
        starts = [start + sum(self.sizes[:d]) for d in range(self.num_discrete)]
        return [(0, first) for first in starts]

    # --- there and back -------------------------------------------------------------------------

    def to_learner(self, action: Tensor) -> Tensor:
        """Actions (..., H) as the learner has them."""
        if self.joint is not None:
            return self.joint.to_joint(action)
        return action if self._is_same else action.index_select(-1, self._order)

    def from_learner(self, action: Tensor) -> Tensor:
        """The inverse of `to_learner`."""
        if self.joint is not None:
            return self.joint.to_heads(action)
        return self.heads_in_order(action)

    def heads_in_order(self, columns: Tensor) -> Tensor:
        """Numbers of the learner's heads (..., H) in the order of the spec."""
        return columns if self._is_same else columns.index_select(-1, self._back)

    @property
    def always_masks(self) -> bool:
        """Whether some options may never be chosen: joint actions that are the same as others."""
        return self.joint is not None and self.joint.legal is not None

    def mask(self, legal: Tensor | None) -> Tensor | None:
        """What the environment allows (..., D and rows, K), as zeros and ones (..., mask_width)."""
        if self.joint is not None:
            allowed = self.joint.allowed(legal)
            return None if allowed is None else allowed.float()
        return None if legal is None else legal.flatten(-2).index_select(-1, self._exists).float()
