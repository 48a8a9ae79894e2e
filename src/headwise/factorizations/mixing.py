"""Monotonic mixing: Q = V + f(A_1 ... A_H), increasing in each centered advantage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from headwise import ops
from headwise.factorizations.values import BranchingValue, Center
from headwise.heads.action_value import Soft
from headwise.heads.blueprint import Blueprint
from headwise.ops import Buffer, Embedding, Layer

MixerKind: TypeAlias = Literal["paper", "qplex"]


class MixedValue(BranchingValue):
    """V and advantages in a mixer, whose weights see what both are made of, without its gradient.

    As a policy each head is a softmax of what its advantages contribute, which is as much as the
    mixture's gradient at zero says.

    Args:
        width: Hidden units of the mixer.
        bends: How its units bend and its weights are made positive, as `ops.mix` has it.
        copies: Networks of the same kind that see the same, such as twins (N).
        center: What advantages are measured from.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        width: int,
        bends: Mapping[str, bool],
        *,
        copies: int = 1,
        center: Center = "max",
    ) -> None:
        super().__init__(blueprint, copies=copies, center=center)
        self._bends = bends
        self._state_width, heads = 2 * blueprint.branch_width, self.num_discrete
        layer = Layer((heads + 1) * width, parts=(heads * width, width))
        self._mixer = blueprint.network([self._state_width], [layer], copies=copies)
        self.parts.append(self._mixer)

    def combine(
        self, value: Buffer, advantage: Buffer, features: Buffer, action: Buffer, *, out: Buffer
    ) -> None:
        """Writes V plus the mixture of advantages, (P, N, B, 1)."""
        weights = self._mixer.forward([self._held(features)])
        ops.mix(value, advantage, weights, **self._bends, out=out)

    def combine_backward(
        self, value: Buffer, advantage: Buffer, *, out: Buffer, weights: bool
    ) -> None:
        """From the gradient of Q to those of V, advantages and, with `weights`, the mixer."""
        weights_of_rows = self._mixer.rows(out.num_rows)
        ops.mix.backward(value, advantage, weights_of_rows, **self._bends, out=out)
        if weights:
            self._mixer.backward([self._state(out.num_rows)])

    def draw(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer, mask: Buffer | None
    ) -> None:
        """Writes options drawn from the first copy's softmax into actions."""
        _, y, features = self.net.forward(self.inputs(x, action), self._first)
        gradient = self._mixer_gradient(self._mixer.forward([self._held(features)], self._first))
        out = [self.options(action), self._scratch("entropy drawn", x.num_rows, self.num_discrete)]
        given = gradient.copies(0), self.options(alpha), self.options(uniform), mask
        ops.boltzmann(y.copies(0), *given, table=self.table, out=out)

    def soft(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer | None, mask: Buffer | None
    ) -> Soft:
        """The value of options drawn from each copy's own softmax, with the entropy bonus.

        Options are drawn, so what a change of their chances does to the mixture has no gradient. It
        would cancel that of their entropies, which may not have one either.
        """
        assert uniform is not None
        rows = x.num_rows
        value, y, features = self.net.forward(self.inputs(x, action))
        weights = self._mixer.forward([self._held(features)])
        drawn, entropy, bonus, use = self._drawn(action)
        given = self._mixer_gradient(weights), self.options(alpha), self.options(uniform), mask
        out = [self.options(drawn), entropy, *([] if use is None else [use])]
        if use is not None and self.num_continuous:
            numbers = self.num_discrete, self.num_continuous
            ops.copy(action.columns(*numbers), out=drawn.columns(*numbers))
        ops.boltzmann(y, *given, table=self.soft_table, out=out)
        q, soft = self.room("q", rows), self.room("soft", rows)
        ops.mix(value, self.chosen(y, drawn, mask), weights, **self._bends, out=q)
        ops.entropy_bonus(entropy, self.options(alpha), None, adds_up=True, out=bonus)
        ops.add(q, bonus, out=soft)
        return Soft(soft, entropy.copies(0), None if use is None else use.copies(0))

    def soft_backward(self, x: Buffer, action: Buffer, alpha: Buffer, mask: Buffer | None) -> None:
        """From the gradient of the soft value to that of the real numbers of actions."""
        drawn, _, bonus, _ = self._drawn(action)
        rows = x.num_rows
        ops.add.backward(self.room("q", rows), bonus, out=self.room("soft", rows))
        (value, y), chosen = self.net.rows(rows), self.by_head("advantage", rows)
        self.combine_backward(value, chosen, out=self.room("q", rows), weights=False)
        self.back_to_advantages(y, drawn)
        self.net.backward(self.inputs(x, action), weights=False)

    # --- the pieces -----------------------------------------------------------------------------

    def _drawn(self, action: Buffer) -> tuple[Buffer, Buffer, Buffer, Buffer | None]:
        """Room for actions with options that each copy draws, entropies, their bonus, and use."""
        rows, heads = action.num_rows, action.width
        drawn = self._scratch("drawn", rows, heads, copies=self.copies, gradient=False)
        entropy = self.by_head("entropy", rows, gradient=False)
        bonus = self._scratch("bonus", rows, copies=self.copies, gradient=False)
        use = None
        if self.soft_table.is_conditional:
            use = self._scratch("chance of use", rows, heads, copies=self.copies, gradient=False)
        return drawn, entropy, bonus, use

    def _state(self, rows: int) -> Buffer:
        return self._scratch("state", rows, self._state_width, copies=self.copies, gradient=False)

    def _held(self, features: Buffer) -> Buffer:
        """What V and advantages are made of, as constants."""
        state = self._state(features.num_rows)
        ops.copy(features, out=state)
        return state

    def _mixer_gradient(self, weights: Buffer) -> Buffer:
        """What advantages count where all are zero, (P, N, B, D)."""
        rows = weights.num_rows
        zero, gradient = (self.by_head(name, rows, gradient=False) for name in ("zero", "gradient"))
        ops.mix_gradient(zero, weights, **self._bends, out=gradient)
        return gradient


class WeighedValue(BranchingValue):
    """V plus advantages times positive weights, which see the action as well: QPLEX's own mixer.

    Args:
        width: Hidden units of the network that weights come from.
    """

    def __init__(self, blueprint: Blueprint, width: int) -> None:
        super().__init__(blueprint)
        self._state_width = 2 * blueprint.branch_width
        self._embedding = Embedding(self.table, [False] * self.num_discrete)
        self._mixer = blueprint.network(
            [self._state_width, self._embedding.size],
            [Layer(width, "relu"), Layer(self.num_discrete)],
        )
        self.parts.append(self._mixer)

    def combine(
        self, value: Buffer, advantage: Buffer, features: Buffer, action: Buffer, *, out: Buffer
    ) -> None:
        """Writes V plus the weighted advantages, (P, 1, B, 1)."""
        state, options = self._seen(out.num_rows)
        ops.copy(features, out=state)
        ops.embed(action, None, self.use_room(action), embedding=self._embedding, out=options)
        ops.weigh(value, advantage, self._mixer.forward([state, options]), out=out)

    def combine_backward(
        self, value: Buffer, advantage: Buffer, *, out: Buffer, weights: bool
    ) -> None:
        """From the gradient of Q to those of V, advantages and, with `weights`, the mixer."""
        ops.weigh.backward(value, advantage, self._mixer.rows(out.num_rows), out=out)
        if weights:
            self._mixer.backward(self._seen(out.num_rows))

    def _seen(self, rows: int) -> list[Buffer]:
        """What weights depend on: what V and advantages are made of as constants, and options."""
        widths = {"state": self._state_width, "options": self._embedding.size}
        return [self._scratch(name, rows, w, gradient=False) for name, w in widths.items()]
