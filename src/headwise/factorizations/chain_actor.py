"""A chain of actors over real numbers: each network sees the state and the numbers before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwise import ops
from headwise.factorizations.policies import FactoredPolicy
from headwise.heads.blueprint import Blueprint
from headwise.heads.graph import Graph
from headwise.ops import Buffer, Draw, HeadTable


class ChainActor(FactoredPolicy):
    """A network for each continuous head, through all of which gradients flow.

    Numbers are their own inputs. One that an action does not use is zero to the heads behind it.

    Args:
        graph: Which continuous heads, numbered from 0, look at which.
    """

    def __init__(self, blueprint: Blueprint, graph: Graph) -> None:
        self.graph = graph
        super().__init__(blueprint, independent=True, which="continuous")
        self._scratch = blueprint.scratch()
        self._one = HeadTable(
            [0], [None], [(0, 0)], kind=blueprint.kind, state_std=True, log_std=blueprint.log_std,
            device=blueprint.device,
        )  # fmt: skip
        self._links: dict[int, list[Draw]] = {}

    def input_widths(self) -> list[int]:
        """Widths of the networks' inputs."""
        return [self.blueprint.features, self.table.num_heads]

    def sees(self) -> Sequence[Sequence[Sequence[tuple[int, int]]]]:
        """All features, and the numbers looked at."""
        own = [[(parent, 1) for parent in sorted(some)] for some in self.graph.parents]
        return [[[(0, self.blueprint.features)]] * len(own), own]

    def sample(
        self, x: Buffer, uniform: Buffer, mask: Buffer | None, out: Sequence[Buffer]
    ) -> None:
        """Draws number after number: raw actions, unit actions and log-probabilities."""
        for head, y in self._unroll(x, out[1]):
            own = [buffer.columns(head) for buffer in out]
            ops.sample(y, None, uniform.columns(head), None, table=self._one, out=own)
        if self.table.is_conditional:
            ops.multiply(out[2], self._use(x.num_rows), out=out[2])

    def mode(self, x: Buffer, mask: Buffer | None, out: Sequence[Buffer]) -> None:
        """The mode of number after number."""
        for head, y in self._unroll(x, out[1]):
            own = [buffer.columns(head) for buffer in out]
            ops.mode(y, None, None, table=self._one, out=own)

    def rsample(self, x: Buffer, uniform: Buffer, mask: Buffer | None, out: Draw) -> None:
        """Draws number after number, with minus the log-density of each that is in use."""
        links = self._links_of(out)
        for head, y in self._unroll(x, out.unit):
            ops.rsample(y, None, uniform.columns(head), None, table=self._one, out=links[head])
        if out.activity is not None:
            use = self._use(x.num_rows)
            ops.multiply(self._entropy(x.num_rows), use, out=out.entropy)
            ops.copy(use, out=out.activity)

    def rsample_backward(self, x: Buffer, uniform: Buffer, mask: Buffer | None, out: Draw) -> None:
        """From the last number to the first: each adds to the gradients of those before it."""
        rows, links, seen = x.num_rows, self._links_of(out), self._seen(out.unit)
        if self.table.is_conditional:
            ops.multiply.backward(self._entropy(rows), self._use(rows), out=out.entropy)
            ops.fill(seen.gradient_buffer, 0.0)
        if x.has_gradient:
            ops.fill(x.gradient_buffer, 0.0)
        for level in reversed(self.graph.levels):
            for head in level:
                if self.table.is_conditional:
                    by_use = self._scratch("by use", rows)
                    own, inner = (x.gradient_buffer.columns(head) for x in (out.unit, seen))
                    ops.multiply(inner, self._use(rows).columns(head), out=by_use)
                    ops.add(own, by_use, out=own)
                y = self.net.rows(rows).copies(head)
                ops.rsample.backward(
                    y, None, uniform.columns(head), None, table=self._one, out=links[head]
                )
            self.net.backward([x, seen], level, add=True)

    # --- the pieces -----------------------------------------------------------------------------

    def _unroll(self, x: Buffer, unit: Buffer) -> Iterator[tuple[int, Buffer]]:
        """The heads in order, with their networks' outputs; each must be drawn before the next.

        The networks of a level go forward at once.
        """
        seen, rows = self._seen(unit), x.num_rows
        for level in self.graph.levels:
            self.net.forward([x, seen], level)
            for head in level:
                yield head, self.net.rows(rows).copies(head)
                if self.table.is_conditional:
                    ops.in_use(unit, table=self.table, out=self._use(rows))
                    own = unit.columns(head), self._use(rows).columns(head)
                    ops.multiply(*own, out=seen.columns(head))

    def _seen(self, unit: Buffer) -> Buffer:
        """The numbers as networks see them."""
        if not self.table.is_conditional:
            return unit
        return self._scratch("seen", unit.num_rows, self.table.num_heads)

    def _use(self, rows: int) -> Buffer:
        return self._scratch("use", rows, self.table.num_heads, gradient=False)

    def _entropy(self, rows: int) -> Buffer:
        """Minus the log-density of each number, in use or not."""
        return self._scratch("entropy", rows, self.table.num_heads)

    def _links_of(self, out: Draw) -> list[Draw]:
        """What is drawn, number by number."""
        if id(out) not in self._links:
            entropy, rows = out.entropy, out.unit.num_rows
            if self.table.is_conditional:
                entropy = self._entropy(rows)
            self._links[id(out)] = [
                Draw(
                    self._one, out.unit.members, rows, unit=out.unit.columns(head),
                    entropy=entropy.columns(head), device=out.unit.device,
                )
                for head in range(self.table.num_heads)
            ]  # fmt: skip
        return self._links[id(out)]
