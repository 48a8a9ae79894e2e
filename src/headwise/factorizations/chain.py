"""Auto-regressive policies: each head's network sees the state and the heads before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwise import ops
from headwise.factorizations.policies import FactoredPolicy, starts
from headwise.heads.blueprint import Actions, Blueprint
from headwise.heads.layout import Which
from headwise.ops import Buffer, Embedding, HeadTable


class ChainPolicy(FactoredPolicy):
    """A policy network for each head, given the heads before it.

    Args:
        order: The heads in the order in which they are chosen.
        which: The heads.
    """

    depends = True

    def __init__(self, blueprint: Blueprint, order: Sequence[int], which: Which = "all") -> None:
        self._order = list(order)
        self.embedding = Embedding(
            blueprint.layout.table([(0, 0)] * len(self._order), which),
            blueprint.layout.ordered if which != "continuous" else [False] * len(self._order),
            self._order,
        )
        super().__init__(blueprint, independent=True, which=which)
        self._scratch = blueprint.scratch()
        self._single = [self._alone(h) for h in range(self.table.num_heads)]

    def leaves(self) -> list[int]:
        """Widths of the networks' inputs."""
        return [self.blueprint.features, self.embedding.size]

    def sees(self) -> Sequence[Sequence[Sequence[tuple[int, int]]]]:
        """All features, and the heads before it: the columns come in the order of choice."""
        heads = range(len(self._order))
        before = [self.embedding.first[h] for h in heads]
        return [
            [[(0, self.blueprint.features)]] * len(before),
            [[(0, n)] if n else [] for n in before],
        ]

    def inputs(self, x: Buffer, actions: Actions) -> list[Buffer]:
        """Features, and the actions as rows of inputs."""
        return [x, self._scratch("prefix", x.num_rows, self.embedding.size)]

    def outputs(self, x: Buffer, actions: Actions) -> tuple[Buffer, Buffer | None]:
        """The networks' outputs for given actions, and the free standard deviations."""
        x, prefix = self.inputs(x, actions)
        self._embed(actions.unit, prefix)
        return self.net.forward([x, prefix]), self.std

    def sample(
        self, x: Buffer, uniform: Buffer, mask: Buffer | None, out: Sequence[Buffer]
    ) -> None:
        """Draws head after head, and writes raw actions, unit actions and log-probabilities."""
        raw, unit, log_prob = out
        for head in self._unroll(x, unit):
            y, std, allowed = self._of(head, x, mask)
            own = [b.columns(head) for b in (raw, unit, log_prob)]
            ops.sample(
                y, std, self._uniforms(head, uniform), allowed, table=self._single[head], out=own
            )
        if self.table.is_conditional:
            use = self._scratch("use", x.num_rows, self.table.num_heads)
            ops.in_use(unit, table=self.table, out=use)
            ops.multiply(log_prob, use, out=log_prob)

    def mode(self, x: Buffer, mask: Buffer | None, out: Sequence[Buffer]) -> None:
        """The most likely value of head after head."""
        raw, unit = out
        for head in self._unroll(x, unit):
            y, std, allowed = self._of(head, x, mask)
            own = [b.columns(head) for b in (raw, unit)]
            ops.mode(y, std, allowed, table=self._single[head], out=own)

    def _unroll(self, x: Buffer, unit: Buffer) -> Iterator[int]:
        """The heads in order; before each its network goes forward, given the actions so far."""
        for head in self._order:
            x, prefix = self.inputs(x, Actions(unit, unit))
            self._embed(unit, prefix)
            self.net.forward([x, prefix], [head])
            yield head

    def _embed(self, unit: Buffer, out: Buffer) -> None:
        use = None
        if self.table.is_conditional:
            use = self._scratch("use", unit.num_rows, self.table.num_heads)
            ops.in_use(unit, table=self.table, out=use)
        ops.embed(unit, None, use, embedding=self.embedding, out=out)

    def _of(
        self, head: int, x: Buffer, mask: Buffer | None
    ) -> tuple[Buffer, Buffer | None, Buffer | None]:
        """What there is of one head: outputs, the free standard deviation and the mask."""
        y, discrete = self.net.rows(x.num_rows), len(self.table.discrete)
        if head < discrete:
            first = starts(self.table.sizes)[head]
            return y, None, mask and mask.columns(first, self.table.sizes[head])
        return y, self.std and self.std.columns(head - discrete), None

    def _uniforms(self, head: int, uniform: Buffer) -> Buffer:
        """The columns of a whole action's uniform numbers that a head takes."""
        discrete = len(self.table.discrete)
        each = self._single[head].num_uniforms
        first = head if head < discrete else discrete + (head - discrete) * each
        return uniform.columns(first, each)

    def _alone(self, head: int) -> HeadTable:
        """One head, wherever the others are."""
        table = self.table
        return HeadTable(
            [table.options[head]], [None], [table.places[head]], stack=table.stack,
            kind=table.kind, state_std=table.state_std, log_std=table.log_std, device=table.device,
        )  # fmt: skip
