"""Auto-regressive policies: each head's network sees the state and the heads it looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwise import ops
from headwise.factorizations.policies import FactoredPolicy, starts
from headwise.heads.blueprint import Actions, Blueprint
from headwise.heads.graph import Graph, runs_of
from headwise.heads.layout import Which
from headwise.ops import Buffer, Embedding, HeadTable


class ChainPolicy(FactoredPolicy):
    """A policy network for each head, given the heads that it looks at.

    Heads are drawn level by level, those of a level at once, and evaluated all at once.

    Args:
        graph: Which heads look at which.
        which: The heads.
    """

    depends = True

    def __init__(self, blueprint: Blueprint, graph: Graph, which: Which = "all") -> None:
        self.graph = graph
        self.embedding = Embedding(
            blueprint.layout.table([(0, 0)] * len(graph.parents), which),
            blueprint.layout.ordered if which != "continuous" else [False] * len(graph.parents),
            graph.order,
        )
        super().__init__(blueprint, independent=True, which=which)
        self._scratch = blueprint.scratch()
        runs = (run for level in graph.levels for run in runs_of(level))
        self._some = {run: self._part(*run) for run in runs}

    def input_widths(self) -> list[int]:
        """Widths of the networks' inputs."""
        return [self.blueprint.features, self.embedding.size]

    def sees(self) -> Sequence[Sequence[Sequence[tuple[int, int]]]]:
        """All features, and the heads looked at: the columns come in the order of choice."""
        first = [self.embedding.first[h] for h in range(self.table.num_heads)]
        seen = [self.graph.columns(h, first, self.embedding.size) for h in range(len(first))]
        return [[[(0, self.blueprint.features)]] * len(first), seen]

    def inputs(self, x: Buffer, actions: Actions) -> list[Buffer]:
        """Features, and the actions as rows of inputs."""
        return [x, self._scratch("prefix", x.num_rows, self.embedding.size)]

    def outputs(self, x: Buffer, actions: Actions) -> tuple[Buffer, Buffer | None]:
        """The networks' outputs for given actions, and the free standard deviations."""
        x, prefix = self.inputs(x, actions)
        self._embed(actions.unit, prefix)
        return self.net.forward([x, prefix]), self.std

    def legal(self, actions: Actions) -> Buffer | None:
        """Which options given actions could have, each head after those before it."""
        return self._legal(actions.unit, actions.mask)

    def sample(
        self, x: Buffer, uniform: Buffer, mask: Buffer | None, out: Sequence[Buffer]
    ) -> None:
        """Draws level by level, and writes raw actions, unit actions and log-probabilities."""
        raw, unit, log_prob = out
        for run, legal in self._unroll(x, unit, mask):
            y, std, allowed = self._of(run, x, legal)
            own = [b.columns(*run) for b in (raw, unit, log_prob)]
            ops.sample(
                y, std, self._uniforms(run, uniform), allowed, table=self._some[run], out=own
            )
        if self.table.is_conditional:
            use = self._scratch("use", x.num_rows, self.table.num_heads)
            ops.in_use(unit, table=self.table, out=use)
            ops.multiply(log_prob, use, out=log_prob)

    def mode(self, x: Buffer, mask: Buffer | None, out: Sequence[Buffer]) -> None:
        """The most likely value of the heads, level by level."""
        raw, unit = out
        for run, legal in self._unroll(x, unit, mask):
            y, std, allowed = self._of(run, x, legal)
            own = [b.columns(*run) for b in (raw, unit)]
            ops.mode(y, std, allowed, table=self._some[run], out=own)

    def _unroll(
        self, x: Buffer, unit: Buffer, mask: Buffer | None
    ) -> Iterator[tuple[tuple[int, int], Buffer | None]]:
        """Runs of heads, each with what is legal there by what was drawn.

        A run is the first of its heads, and how many there are. Before those of a level their
        networks go forward.
        """
        for level in self.graph.levels:
            x, prefix = self.inputs(x, Actions(unit, unit))
            self._embed(unit, prefix)
            self.net.forward([x, prefix], level)
            legal = self._legal(unit, mask, level)
            yield from ((run, legal) for run in runs_of(level))

    def _legal(
        self, unit: Buffer, mask: Buffer | None, heads: tuple[int, ...] | None = None
    ) -> Buffer | None:
        links = self.blueprint.layout.links
        if links is None:
            return mask
        legal = self._scratch("legal", unit.num_rows, self.table.total, gradient=False)
        ops.legal_options(unit, mask, links=links, heads=heads, out=legal)
        return legal

    def _embed(self, unit: Buffer, out: Buffer) -> None:
        use = None
        if self.table.is_conditional:
            use = self._scratch("use", unit.num_rows, self.table.num_heads)
            ops.in_use(unit, table=self.table, out=use)
        ops.embed(unit, None, use, embedding=self.embedding, out=out)

    def _of(
        self, run: tuple[int, int], x: Buffer, mask: Buffer | None
    ) -> tuple[Buffer, Buffer | None, Buffer | None]:
        """What there is of a run of heads: outputs, free standard deviations and the mask."""
        y, part = self.net.rows(x.num_rows), self._some[run]
        std, allowed = None, None
        if part.discrete and mask is not None:
            allowed = mask.columns(starts(self.table.sizes)[run[0]], part.total)
        if part.continuous and self.std is not None:
            first = run[0] + len(part.discrete) - len(self.table.discrete)
            std = self.std.columns(first, len(part.continuous))
        return y, std, allowed

    def _uniforms(self, run: tuple[int, int], uniform: Buffer) -> Buffer:
        """The columns of a whole action's uniform numbers that a run of heads takes."""
        before = self._part(0, run[0]).num_uniforms if run[0] else 0
        return uniform.columns(before, self._some[run].num_uniforms)

    def _part(self, first: int, count: int) -> HeadTable:
        """Some heads, wherever the others are."""
        table, some = self.table, slice(first, first + count)
        return HeadTable(
            table.options[some], [None] * count, table.places[some], stack=table.stack,
            kind=table.kind, state_std=table.state_std, log_std=table.log_std, device=table.device,
        )  # fmt: skip
