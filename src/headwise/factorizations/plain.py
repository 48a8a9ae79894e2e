"""Plain values, for DQN: a number for each option of each head, and no value of the state beside.

The value of an action is the sum of its options' numbers, or each is a prediction by itself. In one
network for all, a head that an action does not use counts as its best option would, so that it is
no reason to use it or not, and each head's own maximum is the joint maximum.
"""

from __future__ import annotations

from headwise import ops
from headwise.factorizations.values import OptionValues, buffers_of
from headwise.heads.action_value import Soft
from headwise.heads.blueprint import Blueprint
from headwise.ops import Buffer, Layer


class PlainValue(OptionValues):
    """One network for all heads, or one for each, whose outputs are the values of options.

    See `OptionValues` for the arguments.
    """

    def __init__(
        self, blueprint: Blueprint, *, adds_up: bool = True, independent: bool = False
    ) -> None:
        super().__init__(blueprint, adds_up=adds_up, independent=independent)
        outputs = Layer(self.table.widest if independent else self.table.total)
        layers = [*blueprint.encoder(blueprint.gain), outputs]
        self.net = blueprint.network([blueprint.features], layers, copies=self.stack)
        self.parts.append(self.net)

    def predict(self, x: Buffer, action: Buffer, mask: Buffer | None) -> Buffer:
        """The values of the options taken, (P, 1, B, G)."""
        y = self.net.forward([x])
        self.use(action)
        ops.greedy(y, self.own(mask), table=self.table, out=self.best(x.num_rows))
        return self._values_of(y, *self._given(action))

    def backward(
        self, x: Buffer, action: Buffer, mask: Buffer | None, *, weights: bool = True
    ) -> None:
        """From the gradient of what was predicted to those of parameters."""
        y, chosen = self.net.rows(x.num_rows), self.by_head("chosen", x.num_rows)
        ops.total.backward(None, chosen, adds_up=self.adds_up, out=self.room("q", x.num_rows))
        ops.option_values.backward(y, *self._given(action), table=self.table, out=chosen)
        self.net.backward([x], weights=weights)

    def greedy(self, x: Buffer, action: Buffer, mask: Buffer | None) -> None:
        """Writes each head's best option into actions."""
        self.best_of(self.net.forward([x]), mask, self.options(action))

    def greedy_value(self, x: Buffer, mask: Buffer | None) -> Buffer:
        """What is predicted for the best action, whether it uses a head or not."""
        y, best = self.net.forward([x]), self.best(x.num_rows)
        ops.greedy(y, self.own(mask), table=self.table, out=best)
        if self.links is None:
            return self._values_of(y, best, None, None)
        action = self._scratch("best action", x.num_rows, self.num_discrete, gradient=False)
        self.best_of(y, mask, action)
        self.use(action)
        return self._values_of(y, *self._given(action))

    def soft(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer | None, mask: Buffer | None
    ) -> Soft:
        """The expected value of options under a softmax of them, with their entropies."""
        soft = self.soft_room(x.num_rows)
        given = None, self.net.forward([x]), self.options(alpha), mask, None
        table, adds_up = self.soft_table, self.adds_up
        ops.soft_value(*given, table=table, adds_up=adds_up, plain=True, out=buffers_of(soft))
        return soft

    def log_policy(self, x: Buffer, action: Buffer, alpha: Buffer, mask: Buffer | None) -> Buffer:
        """Temperatures times the log-policies of the options taken, (P, 1, B, D)."""
        out = self.by_head("log policy", x.num_rows)
        given = self.net.forward([x]), self.options(action), self.options(alpha), mask
        ops.scaled_log_policy(*given, table=self.table, out=out)
        return out

    def _values_of(
        self, y: Buffer, options: Buffer, best: Buffer | None, use: Buffer | None
    ) -> Buffer:
        chosen, q = self.by_head("chosen", y.num_rows), self.room("q", y.num_rows)
        ops.option_values(y, options, best, use, table=self.table, out=chosen)
        ops.total(None, chosen, adds_up=self.adds_up, out=q)
        return q

    def _given(self, action: Buffer) -> tuple[Buffer, Buffer | None, Buffer | None]:
        """The options taken, and the best ones where some are not in use."""
        use = self.use_room(action)
        if use is None:
            return self.options(action), None, None
        return self.options(action), self.best(action.num_rows), self.options(use)
