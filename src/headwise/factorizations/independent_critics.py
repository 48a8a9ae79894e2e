"""Critics of heads that are learners of their own."""

from __future__ import annotations

from headwise import ops
from headwise.factorizations.values import BranchingValue
from headwise.heads.action_value import Soft
from headwise.heads.blueprint import Blueprint, Part
from headwise.ops import Buffer, HeadTable, Layer


class IndependentCritics:
    """V_h(s) and A_h(s, .) of each discrete head, Q_h(s, a_h) of each continuous one, in N copies.

    Args:
        copies: Networks of the same kind that see the same, such as twins (N).
    """

    independent = True

    def __init__(self, blueprint: Blueprint, *, copies: int) -> None:
        layout = blueprint.layout
        self.copies, self.num_values = copies, layout.num_heads
        self.num_discrete, self.num_continuous = layout.num_discrete, layout.num_continuous
        self._scratch = blueprint.scratch()
        self.parts: list[Part] = []
        self._discrete: BranchingValue | None = None
        if self.num_discrete:
            self._discrete = BranchingValue(
                blueprint, copies=copies, adds_up=False, independent=True,
                room=lambda name, rows: self._room(name, rows).columns(0, self.num_discrete),
            )  # fmt: skip
            self.parts += self._discrete.parts
        if count := self.num_continuous:
            self._net = blueprint.network(
                [blueprint.features, count],
                [*blueprint.encoder(blueprint.gain), Layer(1)],
                copies=copies * count,
                sees=[
                    [[(0, blueprint.features)]] * copies * count,
                    [[(head, 1)] for head in range(count)] * copies,
                ],
            )
            self.parts.append(self._net)
        self._conditions: HeadTable | None = None
        if layout.is_conditional:
            places = [(head, 0) for head in range(self.num_discrete)]
            places += [(0, 0)] * self.num_continuous
            self._conditions = layout.table(places, stack=max(self.num_discrete, 1))

    def predict(self, x: Buffer, action: Buffer, mask: Buffer | None) -> Buffer:
        """Every head's own value of what it does, (P, N, B, H)."""
        if self._discrete is not None:
            self._discrete.predict(x, action, mask)
        self._judge_numbers("q", x, action)
        return self._room("q", x.num_rows)

    def backward(
        self, x: Buffer, action: Buffer, mask: Buffer | None, *, weights: bool = True
    ) -> None:
        """From the gradient of what was predicted to those of parameters and of the action."""
        if self._discrete is not None:
            self._discrete.backward(x, action, mask, weights=weights)
        self._numbers_back("q", x, action, weights=weights)

    def greedy(self, x: Buffer, action: Buffer, mask: Buffer | None) -> None:
        """Writes the best option of each discrete head into actions."""
        if self._discrete is not None:
            self._discrete.greedy(x, action, mask)

    def draw(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer, mask: Buffer | None
    ) -> None:
        """Writes an option of each discrete head, drawn from its softmax, into actions."""
        if self._discrete is not None:
            self._discrete.draw(x, action, alpha, uniform, mask)

    def soft(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer | None, mask: Buffer | None
    ) -> Soft:
        """Every head's own soft value, and how likely it is to be in use."""
        entropy = use = None
        if self._discrete is not None:
            entropy = self._discrete.soft(x, action, alpha, uniform, mask).entropy
        if self._conditions is not None:
            use = self._chance_of_use(action, alpha, mask)
            if entropy is not None:
                ops.multiply(entropy, use.columns(0, self.num_discrete), out=entropy)
        self._judge_numbers("soft", x, action)
        return Soft(self._room("soft", x.num_rows), entropy, use)

    def soft_backward(self, x: Buffer, action: Buffer, alpha: Buffer, mask: Buffer | None) -> None:
        """From the gradient of continuous heads' values to that of the real numbers."""
        self._numbers_back("soft", x, action, weights=False)

    def _judge_numbers(self, name: str, x: Buffer, action: Buffer) -> None:
        """Writes the values of real numbers as the last columns."""
        if not self.num_continuous:
            return
        y = self._net.forward(self._inputs(x, action))
        for copy in range(self.copies):
            own = y.copies(copy * self.num_continuous, self.num_continuous)
            ops.heads_last(own, out=self._of_numbers(name, x, copy))

    def _numbers_back(self, name: str, x: Buffer, action: Buffer, *, weights: bool) -> None:
        if not self.num_continuous:
            return
        y = self._net.rows(x.num_rows)
        for copy in range(self.copies):
            own = y.copies(copy * self.num_continuous, self.num_continuous)
            ops.heads_last.backward(own, out=self._of_numbers(name, x, copy))
        add = x.has_gradient and self._discrete is not None  # which wrote that of features
        self._net.backward(self._inputs(x, action), weights=weights, add=add)

    def _of_numbers(self, name: str, x: Buffer, copy: int) -> Buffer:
        columns = self._room(name, x.num_rows).columns(self.num_discrete, self.num_continuous)
        return columns.copies(copy)

    def _inputs(self, x: Buffer, action: Buffer) -> list[Buffer]:
        return [x, action.columns(self.num_discrete, self.num_continuous)]

    def _chance_of_use(self, action: Buffer, alpha: Buffer, mask: Buffer | None) -> Buffer:
        """By the first copy's softmax of each discrete head, and the real numbers given."""
        assert self._conditions is not None
        rows, discrete = action.num_rows, self._discrete
        use = self._scratch("chance of use", rows, action.width, gradient=False)
        if discrete is None:
            ops.in_use(action, table=self._conditions, out=use)
        else:
            y = discrete.net.rows(rows)[1].copies(0, discrete.stack)
            given = y, discrete.options(alpha), mask, action
            ops.chance_of_use(*given, table=self._conditions, out=use)
        return use

    def _room(self, name: str, rows: int) -> Buffer:
        return self._scratch(name, rows, self.num_values, copies=self.copies)
