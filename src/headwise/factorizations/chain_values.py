"""Auto-regressive values: V, and advantages of each head given the heads before it.

Advantages are centered for the prefix given: A_h = M_h - M_(h-1), where M_h is the best that the
remaining heads can do. The sum telescopes to Q - max Q, so the form can represent any Q, and
choosing the best head by head gives the best joint action.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwise import ops
from headwise.factorizations.policies import starts
from headwise.factorizations.values import OptionValues, buffers_of
from headwise.heads.action_value import Soft
from headwise.heads.blueprint import Blueprint
from headwise.heads.graph import Graph
from headwise.ops import Buffer, Embedding, HeadTable, Layer


class ChainValue(OptionValues):
    """V(s), and an advantage network for each discrete head given the heads that it looks at.

    Real numbers of an action are inputs of all of them. The soft value is taken along one prefix
    drawn from the first copy, with the exact expectation inside each head.

    Args:
        graph: Which discrete heads look at which.
        copies: Networks of the same kind that see the same, such as twins (N).
    """

    def __init__(self, blueprint: Blueprint, graph: Graph, *, copies: int = 1) -> None:
        super().__init__(blueprint, copies=copies, stacked=True)
        layout, heads, self.graph = blueprint.layout, self.num_discrete, graph
        self.embedding = Embedding(self.table, layout.ordered, graph.order)
        self._single = [
            HeadTable([n], [None], [(0, 0)], device=blueprint.device) for n in layout.sizes
        ]
        self._starts = starts(layout.sizes)
        first = [self.embedding.first[head] for head in range(heads)]
        seen = [graph.columns(head, first, self.embedding.size) for head in range(heads)]
        layers = [
            *blueprint.encoder(blueprint.gain),
            Layer(blueprint.branch_width, "tanh", blueprint.gain),
        ]
        self._state = blueprint.network(self.input_widths, [*layers, Layer(1)], copies=copies)
        self._each = blueprint.network(
            [*self.input_widths, self.embedding.size],
            [*layers, Layer(self.table.widest)],
            copies=copies * heads,
            sees=[
                *([[(0, width)]] * copies * heads for width in self.input_widths),
                seen * copies,
            ],
        )
        self.parts += [self._state, self._each]

    # --- what is learned ------------------------------------------------------------------------

    def predict(self, x: Buffer, action: Buffer, mask: Buffer | None) -> Buffer:
        """V plus the advantages along the options taken, (P, N, B, 1)."""
        value, y = self._along(x, action)
        q = self.room("q", x.num_rows)
        ops.total(value, self.chosen(y, action, self._legal(action, mask)), adds_up=True, out=q)
        return q

    def backward(
        self, x: Buffer, action: Buffer, mask: Buffer | None, *, weights: bool = True
    ) -> None:
        """From the gradient of what was predicted to those of parameters and of the action."""
        value, y = self._state.rows(x.num_rows), self._each.rows(x.num_rows)
        chosen, q = self.by_head("advantage", x.num_rows), self.room("q", x.num_rows)
        ops.total.backward(value, chosen, adds_up=True, out=q)
        self.back_to_advantages(y, action)
        self._networks_back(x, action, weights=weights)

    # --- what is chosen -------------------------------------------------------------------------

    def greedy(self, x: Buffer, action: Buffer, mask: Buffer | None) -> None:
        """Writes the best option of head after head into actions."""
        for head, y, allowed in self._unroll(x, action, mask):
            ops.greedy(y, allowed, table=self._single[head], out=action.columns(head))

    def greedy_value(self, x: Buffer, mask: Buffer | None) -> Buffer:
        """V: the advantages of the best options are zero."""
        return self._state.forward([x])

    def draw(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer, mask: Buffer | None
    ) -> None:
        """Writes option after option into actions, each drawn from the first copy's softmax."""
        entropy = self._scratch("entropy drawn", x.num_rows)
        for head, y, allowed in self._unroll(x, action, mask):
            given = None, alpha.columns(head), uniform.columns(head), allowed
            out = [action.columns(head), entropy]
            ops.boltzmann(y, *given, table=self._single[head], out=out)

    def _unroll(
        self, x: Buffer, action: Buffer, mask: Buffer | None
    ) -> Iterator[tuple[int, Buffer, Buffer | None]]:
        """The heads level by level, with advantages by the first copy and what is allowed.

        What came before must be in the action by then.
        """
        for level in self.graph.levels:
            self._each.forward(self._embedded(x, action), level)
            legal = self._legal(action, mask, level)
            for head in level:
                y, options = self._each.rows(x.num_rows).copies(head), self.layout.sizes[head]
                yield head, y, legal and legal.columns(self._starts[head], options)

    # --- soft values ----------------------------------------------------------------------------

    def soft(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer | None, mask: Buffer | None
    ) -> Soft:
        """The soft value along options that are drawn, and written into actions."""
        assert uniform is not None
        self.draw(x, action, alpha, uniform, mask)
        given = *self._along(x, action), *self._soft_given(action, alpha, mask)
        soft = self.soft_room(x.num_rows)
        ops.soft_value(*given, table=self.table, adds_up=True, plain=False, out=buffers_of(soft))
        return soft._replace(use=self.use_room(action))

    def soft_backward(self, x: Buffer, action: Buffer, alpha: Buffer, mask: Buffer | None) -> None:
        """From the gradient of the soft value to that of the real numbers of actions."""
        given = (self._state.rows(x.num_rows), self._each.rows(x.num_rows),
                 *self._soft_given(action, alpha, mask))  # fmt: skip
        out = buffers_of(self.soft_room(x.num_rows))
        ops.soft_value.backward(*given, table=self.table, adds_up=True, plain=False, out=out)
        self._networks_back(x, action, weights=False)

    def _soft_given(
        self, action: Buffer, alpha: Buffer, mask: Buffer | None
    ) -> tuple[Buffer, Buffer | None, Buffer | None]:
        use = self.use_room(action)
        return self.options(alpha), self._legal(action, mask), use and self.options(use)

    def _legal(
        self, action: Buffer, mask: Buffer | None, heads: tuple[int, ...] | None = None
    ) -> Buffer | None:
        """Which options heads have after what the heads before them have in actions."""
        links = self.layout.links
        if links is None:
            return mask
        legal = self._scratch("legal", action.num_rows, self.layout.total, gradient=False)
        ops.legal_options(action, mask, links=links, heads=heads, out=legal)
        return legal

    # --- networks -------------------------------------------------------------------------------

    def _along(self, x: Buffer, action: Buffer) -> tuple[Buffer, Buffer]:
        """V (P, N, B, 1), and advantages (P, N * D, B, K) for the prefixes that actions give."""
        value = self._state.forward(self.inputs(x, action))
        return value, self._each.forward(self._embedded(x, action))

    def _networks_back(self, x: Buffer, action: Buffer, *, weights: bool) -> None:
        self._state.backward(self.inputs(x, action), weights=weights)
        self._each.backward(self._seen(x, action), weights=weights, add=True)

    def _embedded(self, x: Buffer, action: Buffer) -> list[Buffer]:
        """What advantage networks see, with the prefixes that actions give."""
        seen, use = self._seen(x, action), self.use(action)
        options = self.options(action), None, use and self.options(use)
        ops.embed(*options, embedding=self.embedding, out=seen[-1])
        return seen

    def _seen(self, x: Buffer, action: Buffer) -> list[Buffer]:
        prefix = self._scratch("prefix", x.num_rows, self.embedding.size, gradient=False)
        return [*self.inputs(x, action), prefix]
