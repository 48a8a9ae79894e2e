"""Tables that say which options a head has, given those of others, as definitions have them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from headwise.ops.distributions import chosen, pick
from headwise.ops.heads import NEVER, HeadTable
from headwise.ops.operation import operation


class HeadLink(NamedTuple):
    """A table of a head, numbered as in a `HeadTable`."""

    child: int
    parents: tuple[int, ...]
    first: int
    """Where the table begins in a mask that is wider than all options; unless it is known."""
    table: tuple[tuple[bool, ...], ...] | None


class Links:
    """The tables of an action's heads.

    Args:
        table: All heads, with their conditions.
        links: Their tables.
        order: The heads, each after those that its tables are by.
    """

    def __init__(self, table: HeadTable, links: Sequence[HeadLink], order: Sequence[int]) -> None:
        self.table, self.links, self.order = table, tuple(links), tuple(order)
        self.starts = [sum(table.sizes[:d]) for d in range(len(table.sizes))]
        self.of = {h: [x for x in links if x.child == h] for h in table.discrete}

    @cached_property
    def _known(self) -> dict[int, Tensor]:
        """Tables that are always the same, by their place."""
        return {
            i: torch.tensor(link.table, device=self.table.device)
            for i, link in enumerate(self.links)
            if link.table is not None
        }

    def rows(self, link: HeadLink, mask: Tensor | None) -> Tensor:
        """All rows of a table as truths: (rows, options), or (P, 1, B, rows, options) if given."""
        if link.table is not None:
            return self._known[self.links.index(link)]
        count, options = self.num_rows(link), self.table.sizes[link.child]
        assert mask is not None
        own = mask[..., link.first : link.first + count * options]
        return torch.unflatten(own, -1, (count, options)) > 0.0

    # --- trees ----------------------------------------------------------------------------------

    @cached_property
    def parent(self) -> dict[int, int | None]:
        """The one head that the options of each depend on; only of trees."""
        return {h: next((p for x in some for p in x.parents), None) for h, some in self.of.items()}

    @cached_property
    def is_tree(self) -> bool:
        """Whether the options of a head depend on one other at most, with which it is in use.

        Either both are always in use, or under the same condition, or the other is the one that
        decides whether the head is.
        """
        conditions = self.table.conditions
        for head, some in self.of.items():
            parents, own = {p for link in some for p in link.parents}, conditions[head]
            if len(parents) > 1:
                return False
            for parent in parents:
                if conditions[parent] != own and (own is None or own.head != parent):
                    return False
        return True

    def rows_of(self, head: int, mask: Tensor | None) -> Tensor:
        """A head's options by those of its parent, (P, 1, B, rows, options) or less, in a tree."""
        own, size = self.own(head, mask), self.table.sizes[head]
        result = torch.ones(1, size, dtype=torch.bool, device=self.table.device)
        result = result if own is None else result & own.unsqueeze(-2)
        for link in self.of[head]:
            result = result & self.rows(link, mask)
        return result

    def gate(self, head: int, like: Tensor) -> Tensor | None:
        """Which options of the head that decides put a head in use, (options,); None: any."""
        condition = self.table.conditions[head]
        if condition is None or condition.head not in self.table.discrete:
            return None
        option = torch.arange(self.table.sizes[condition.head], device=like.device)
        return (condition.low <= option) & (option < condition.high)

    def best(self, scores: Sequence[Tensor]) -> Tensor:
        """The joint options (P, N, B, D) whose scores have the largest sum, in a tree.

        A head that is not in use counts nothing.

        Args:
            scores: Of each head's options, (P, N, B, rows or 1, options), far below all others
                where an option is not legal.
        """
        conditions, discrete = self.table.conditions, self.table.discrete
        arrived: dict[int, list[Tensor]] = {h: [] for h in discrete}
        choice: dict[int, Tensor] = {}
        for head in (h for h in reversed(self.order) if h in arrived):
            own = scores[head]
            for more in arrived[head]:
                own = own + more.unsqueeze(-2)
            found = own.max(-1)
            choice[head] = found.indices
            condition, parent, gate = conditions[head], self.parent[head], self.gate(head, own)
            if parent is None and condition is not None and condition.head in arrived:
                parent = condition.head
            if parent is not None:
                worth = found.values
                if gate is not None and condition is not None and condition.head == parent:
                    worth = torch.where(gate, worth, torch.zeros_like(worth))
                arrived[parent].append(worth)
        options: dict[int, Tensor] = {}
        for head in (h for h in self.order if h in arrived):
            parent, rows = self.parent[head], choice[head]
            if parent is None or rows.shape[-1] == 1:
                options[head] = rows[..., 0]
            else:
                options[head] = rows.gather(-1, options[parent].unsqueeze(-1)).squeeze(-1)
        return torch.stack([options[h] for h in discrete], dim=-1)

    def num_rows(self, link: HeadLink) -> int:
        """Rows of a table."""
        count = 1
        for parent in link.parents:
            count *= self.table.sizes[parent]
        return count

    def own(self, head: int, mask: Tensor | None) -> Tensor | None:
        """The part of a mask that is of a head's options alone."""
        if mask is None:
            return None
        return mask[..., self.starts[head] : self.starts[head] + self.table.sizes[head]] > 0.0

    def allowed(self, head: int, action: Tensor, mask: Tensor | None) -> Tensor:
        """Which options a head has, (P, N, B, options), after what others have in an action."""
        own = self.own(head, mask)
        shape = (*action.shape[:-1], self.table.sizes[head])
        result = torch.ones(shape, dtype=torch.bool, device=action.device)
        result = result if own is None else own.expand(shape)
        for link in self.of[head]:
            row = torch.zeros_like(action[..., 0]).long()
            for parent in link.parents:
                size = self.table.sizes[parent]
                row = row * size + action[..., parent].long().clamp(0, size - 1)
            rows = self.rows(link, mask)
            if link.table is not None:
                result = result & rows[row]
                continue
            index = row[..., None, None].expand(*row.shape, 1, shape[-1])
            those = rows.expand(*row.shape, -1, -1).gather(-2, index).squeeze(-2)
            if self.table.is_conditional:
                used = self.table.in_use(action)
                for parent in link.parents:
                    those = those | (used[..., parent : parent + 1] == 0.0)
            result = result & those
        return result


def _scores(y: Tensor, mask: Tensor | None, table: HeadTable, links: Links) -> list[Tensor]:
    """Numbers of all options less those of the best, by the parents' options, in a tree."""
    numbers = table.scores(y)
    numbers = numbers - table.masked(numbers, mask).amax(-1, keepdim=True)
    return [
        numbers[..., head, None, :size].masked_fill(~links.rows_of(head, mask), NEVER)
        for head, size in enumerate(table.sizes)
    ]


@operation(compiled=False)
def best_linked(y: Tensor, mask: Tensor | None, *, table: HeadTable, links: Links) -> Tensor:
    """The legal joint options whose numbers have the largest sum, (P, N, B, D), in a tree.

    A head that is not in use counts as its best option would. See `greedy`.
    """
    return links.best(_scores(y.detach(), mask, table, links)).to(y.dtype)


@operation(compiled=False)
def linked_advantages(
    y: Tensor, action: Tensor, mask: Tensor | None, *, table: HeadTable, links: Links
) -> Tensor:
    """Advantages of the options taken, (P, N, B, D), whose sum is 0 at the best legal action.

    What a head counts is its advantage over its best option, nothing where it is not in use; and
    that at the best legal action is subtracted. See `advantages`.
    """
    scores = table.scores(y)
    highest = table.masked(scores, mask).max(-1).indices.to(y.dtype)

    def worth(options: Tensor) -> Tensor:
        found = chosen(scores, options) - chosen(scores, highest)
        return found * links.table.in_use(options) if links.table.is_conditional else found

    with torch.no_grad():
        best = links.best(_scores(y.detach(), mask, table, links)).to(y.dtype)
    return worth(action) - worth(best)


@operation(compiled=False)
def legal_options(
    action: Tensor, mask: Tensor | None, *, links: Links, heads: tuple[int, ...] | None = None
) -> Tensor:
    """Which options each head has after what the heads before it have in an action.

    They are zeros and ones (P, N, B, total); heads that are not chosen yet may have anything in it.

    Args:
        action: In unit form, (P, N, B, H).
        mask: Which options may be chosen, and tables, (P, 1, B, total and more).
        links: The tables.
        heads: The heads that are asked about, all if it is left out; of others it tells less.
    """
    limited = {h for h, some in links.of.items() if some and (heads is None or h in heads)}
    parts = []
    for head in links.table.discrete:
        own = links.own(head, mask)
        if head in limited or own is None:
            own = links.allowed(head, action, mask)
        parts.append(own.to(action.dtype))
    return torch.cat(parts, dim=-1)


@operation(compiled=False)
def explore_linked(
    best: Tensor, uniform: Tensor, epsilon: Tensor, mask: Tensor | None, *, links: Links
) -> Tensor:
    """The options given, but each head by chance any that it has after the heads before it.

    A head whose option is not legal any more, because another explored, takes any as well. See
    `explore`.
    """
    coin, number = uniform.chunk(2, dim=-2)
    columns = list(best.unbind(-1))
    for head in (h for h in links.order if h in links.table.discrete):
        allowed = links.allowed(head, torch.stack(columns, -1), mask)
        equal = best.new_zeros(allowed.shape).masked_fill(~allowed, NEVER)
        anything = pick(equal.log_softmax(-1).unsqueeze(-2), number[..., head : head + 1])[..., 0]
        kept = allowed.gather(-1, columns[head].long().unsqueeze(-1)).squeeze(-1)
        explores = (coin[..., head] < epsilon[..., 0]) | ~kept
        columns[head] = torch.where(explores, anything, columns[head])
    return torch.stack(columns, dim=-1)
