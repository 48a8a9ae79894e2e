"""Plain values, for DQN: a number for each option of each head, and no value of the state beside.

The value of an action is the sum of its options' numbers, or each is a prediction by itself. In one
network for all, a head that an action does not use counts as its best option would, so that it is
no reason to use it or not, and each head's own maximum is the joint maximum.
"""

from __future__ import annotations

from headwise import ops
from headwise.factorizations.values import HeadValues
from headwise.heads.action_value import Soft
from headwise.heads.blueprint import Blueprint
from headwise.ops import Buffer, Layer


class PlainValue(HeadValues):
    """One network for all heads, or one for each, whose outputs are the values of options.

    Args:
        plan: Sizes and kinds.
        adds_up: Whether the heads' numbers are added up to one value.
        apart: Whether every head is a learner of its own.
    """

    def __init__(self, plan: Blueprint, *, adds_up: bool = True, apart: bool = False) -> None:
        count = 1 if adds_up else plan.layout.num_discrete
        super().__init__(plan, copies=1, num_values=count, apart=apart)
        self.adds_up = adds_up
        self.table, self.soft_table = self.tables(plan)
        outputs = Layer(self.table.widest if apart else self.table.total)
        layers = [*plan.encoder(plan.gain), outputs]
        self.net = plan.network([plan.features], layers, copies=self.stack)
        self.parts.append(self.net)

    def predict(self, x: Buffer, action: Buffer, mask: Buffer | None) -> Buffer:
        """The values of the options taken, (P, 1, B, G)."""
        y = self.net.forward([x])
        self.use(action)
        ops.greedy(y, mask, table=self.table, out=self._best(x.num_rows))
        return self._of(y, action, x.num_rows)

    def backward(
        self, x: Buffer, action: Buffer, mask: Buffer | None, *, weights: bool = True
    ) -> None:
        """From the gradient of what was predicted to those of parameters."""
        y, chosen = self.net.rows(x.num_rows), self.by_head("chosen", x.num_rows)
        ops.total.backward(None, chosen, adds_up=self.adds_up, out=self.room("q", x.num_rows))
        given = self._given(action, x.num_rows)
        ops.option_values.backward(y, *given, table=self.table, out=chosen)
        self.net.backward([x], weights=weights)

    def greedy(self, x: Buffer, action: Buffer, mask: Buffer | None) -> None:
        """Writes each head's best option into actions."""
        ops.greedy(self.net.forward([x]), mask, table=self.table, out=self.options(action))

    def greedy_value(self, x: Buffer, mask: Buffer | None) -> Buffer:
        """What is predicted for the best action, whether it uses a head or not."""
        y, best = self.net.forward([x]), self._best(x.num_rows)
        ops.greedy(y, mask, table=self.table, out=best)
        chosen, q = self.by_head("chosen", x.num_rows), self.room("q", x.num_rows)
        ops.option_values(y, best, None, None, table=self.table, out=chosen)
        ops.total(None, chosen, adds_up=self.adds_up, out=q)
        return q

    def soft(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer | None, mask: Buffer | None
    ) -> Soft:
        """What options are expected to be worth under a softmax of them, with their entropies."""
        entropy = self._scratch("entropy", x.num_rows, self.num_discrete, gradient=False)
        use = None
        if self.soft_table.is_conditional:
            use = self._scratch("chance of use", x.num_rows, self.soft_table.num_heads)
        soft = Soft(self.room("soft", x.num_rows), entropy, use)
        given = None, self.net.forward([x]), self.options(alpha), mask, None
        out = [x for x in soft if x is not None]
        ops.soft_value(*given, table=self.soft_table, adds_up=self.adds_up, plain=True, out=out)
        return soft

    def log_policy(self, x: Buffer, action: Buffer, alpha: Buffer, mask: Buffer | None) -> Buffer:
        """Temperatures times the log-policies of the options taken, (P, 1, B, D)."""
        out = self.by_head("log policy", x.num_rows)
        given = self.net.forward([x]), self.options(action), self.options(alpha), mask
        ops.scaled_log_policy(*given, table=self.table, out=out)
        return out

    def _best(self, rows: int) -> Buffer:
        return self.by_head("best", rows, gradient=False)

    def _of(self, y: Buffer, action: Buffer, rows: int) -> Buffer:
        chosen, q = self.by_head("chosen", rows), self.room("q", rows)
        ops.option_values(y, *self._given(action, rows), table=self.table, out=chosen)
        ops.total(None, chosen, adds_up=self.adds_up, out=q)
        return q

    def _given(self, action: Buffer, rows: int) -> tuple[Buffer, Buffer | None, Buffer | None]:
        """The options taken, and the best ones where some are not in use."""
        use = self.use_room(action)
        if use is None:
            return self.options(action), None, None
        return self.options(action), self._best(rows), self.options(use)
