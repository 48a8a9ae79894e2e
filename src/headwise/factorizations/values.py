"""Values over discrete heads: what all of them share, and V with advantages beside it.

Because the advantage of every head's best option is zero, the value of the greedy joint action is V
whatever the mixing, and each head's own maximum is the joint maximum. With advantages that are
measured from their mean, or from nothing, the second is true and the first is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from headwise import ops
from headwise.errors import ConfigError
from headwise.heads.action_value import Soft
from headwise.heads.blueprint import Blueprint, Part
from headwise.nets.dueling import Dueling
from headwise.ops import Buffer, HeadTable

Center: TypeAlias = Literal["max", "mean", "none"]
Room: TypeAlias = Callable[[str, int], Buffer]
"""Where values of so many rows go, by name."""


class HeadValues:
    """What values over discrete heads share: the columns of an action, and where values go.

    A `Scratch` gives the same buffer for the same name and shape: so `backward` finds by name what
    `predict` has written, and `use` need not be called again.

    Args:
        copies: Networks of the same kind that see the same, such as twins (N).
        num_values: Values of an action (G).
        independent: Whether every head is a learner of its own, with networks of its own: it sees
            no other head and does not ask whether it is in use.
        room: Where values go, (P, N, B, G); None makes room for them.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        *,
        copies: int,
        num_values: int,
        independent: bool = False,
        room: Room | None = None,
    ) -> None:
        self.layout = layout = blueprint.layout
        self.copies, self.num_values, self.independent = copies, num_values, independent
        self.num_discrete = layout.num_discrete
        self.num_continuous = 0 if independent else layout.num_continuous
        self.input_widths = [
            blueprint.features,
            *([self.num_continuous] if self.num_continuous else []),
        ]
        """Columns of each input of networks: of states, and of real numbers if there are any."""
        self.parts: list[Part] = []
        self._scratch = blueprint.scratch()
        self.room: Room = room or self._make_room
        self._conditions: HeadTable | None = None
        if layout.is_conditional and not independent:
            self._conditions = layout.bare_table()

    def inputs(self, x: Buffer, action: Buffer) -> list[Buffer]:
        """What networks see: states, and the real numbers of actions."""
        if not self.num_continuous:
            return [x]
        return [x, action.columns(self.num_discrete, self.num_continuous)]

    def options(self, action: Buffer) -> Buffer:
        """The options of actions, (P, 1, B, D)."""
        return action.columns(0, self.num_discrete)

    def use(self, action: Buffer) -> Buffer | None:
        """Which heads actions use, (P, 1 or N, B, H): those whose condition holds; None: all."""
        use = self.use_room(action)
        if use is not None and self._conditions is not None:
            ops.in_use(action, table=self._conditions, out=use)
        return use

    def use_room(self, action: Buffer) -> Buffer | None:
        """Where `use` has written."""
        if self._conditions is None:
            return None
        rows, heads = action.num_rows, action.width
        return self._scratch("use", rows, heads, copies=action.num_copies, gradient=False)

    def by_head(self, name: str, rows: int, *, gradient: bool = True) -> Buffer:
        """Room for a number of each discrete head, (P, N, B, D)."""
        return self._scratch(name, rows, self.num_discrete, copies=self.copies, gradient=gradient)

    def _make_room(self, name: str, rows: int) -> Buffer:
        return self._scratch(name, rows, self.num_values, copies=self.copies)


class OptionValues(HeadValues):
    """Values from a number for every option of every discrete head.

    As a policy each head is a softmax of its options' numbers.

    Args:
        copies: Networks of the same kind that see the same, such as twins (N).
        adds_up: Whether the heads' numbers are added up to one value.
        independent: Whether every head is a learner of its own.
        stacked: Whether every head has a network of its own.
        room: Where values go, (P, N, B, G); None makes room for them.
        center: What advantages are measured from: the best option, the mean of all, or nothing.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        *,
        copies: int = 1,
        adds_up: bool = True,
        independent: bool = False,
        stacked: bool = False,
        room: Room | None = None,
        center: Center = "max",
    ) -> None:
        layout = blueprint.layout
        if center != "max" and (layout.is_conditional or layout.links is not None):
            raise ConfigError(
                "the best option of each head is not the best action where heads may not be in "
                "use or limit each other, unless advantages are measured from the best",
                got=f"center={center!r}, {layout.spec}",
                allowed="center='max'",
                fix="Leave center out.",
            )
        self.center = center
        count = 1 if adds_up else blueprint.layout.num_discrete
        super().__init__(
            blueprint, copies=copies, num_values=count, independent=independent, room=room
        )
        self.adds_up = adds_up
        self.stack = 1
        """Networks of a copy."""
        places = blueprint.layout.side_by_side()
        if stacked or independent:
            self.stack = self.num_discrete
            places = [(head, 0) for head in range(self.num_discrete)]
        self.table = blueprint.layout.table(places, "discrete", conditional=False, stack=self.stack)
        """The discrete heads, where networks have them."""
        self.soft_table = self.table
        """The same with the conditions under which heads are in use."""
        self.links = None if stacked else blueprint.layout.links
        """Which options heads have, given those of others; a chain is told of them in masks."""
        self._centered: tuple[Buffer, Buffer, Buffer | None] | None = None
        if self._conditions is not None and not stacked:  # a chain knows which are in use
            self.soft_table = blueprint.layout.table([*places, *[(0, 0)] * self.num_continuous])

    def chosen(self, y: Buffer, action: Buffer, mask: Buffer | None) -> Buffer:
        """The centered advantages of options taken, (P, N, B, D); zero where not in use."""
        chosen = self.by_head("advantage", y.num_rows)
        if self.links is not None:
            self._centered = y, action, mask
            ops.linked_advantages(*self._centered, table=self.table, links=self.links, out=chosen)
            return chosen
        if self.center == "max":
            ops.greedy(y, mask, table=self.table, out=self.best(y.num_rows))
        elif self.center == "mean":
            ops.even_chances(y, mask, table=self.table, out=self._even(y.num_rows))
        self.use(action)  # writes what `_centered_at` reads
        ops.advantages(y, *self._centered_at(action), table=self.table, out=chosen)
        return chosen

    def back_to_advantages(self, y: Buffer, action: Buffer) -> None:
        """From the gradient of `chosen` to that of all advantages."""
        chosen = self.by_head("advantage", y.num_rows)
        if self.links is not None and self._centered is not None:
            links = self.links
            ops.linked_advantages.backward(
                *self._centered, table=self.table, links=links, out=chosen
            )
            return
        ops.advantages.backward(y, *self._centered_at(action), table=self.table, out=chosen)

    def own(self, mask: Buffer | None) -> Buffer | None:
        """The part of a mask that is of options, without the tables behind them."""
        return mask and mask.columns(0, self.table.total)

    def best_of(self, y: Buffer, mask: Buffer | None, out: Buffer) -> None:
        """Writes the best joint options, (P, N, B, D)."""
        if self.links is None:
            ops.greedy(y, mask, table=self.table, out=out)
        else:
            ops.best_linked(y, mask, table=self.table, links=self.links, out=out)

    def _centered_at(
        self, action: Buffer
    ) -> tuple[Buffer, Buffer | None, Buffer | None, Buffer | None]:
        """Options taken, those of advantage zero, chances of mean zero, and which are in use."""
        use, rows = self.use_room(action), action.num_rows
        best = self.best(rows) if self.center == "max" else None
        chances = self._even(rows) if self.center == "mean" else None
        return self.options(action), best, chances, use and self.options(use)

    def _even(self, rows: int) -> Buffer:
        return self._scratch("even chances", rows, self.table.total, gradient=False)

    def best(self, rows: int) -> Buffer:
        """Room for the greedy options, (P, N, B, D)."""
        return self.by_head("best", rows, gradient=False)

    def soft_room(self, rows: int) -> Soft:
        """Room for a soft value."""
        entropy = self._scratch("entropy", rows, self.num_discrete, gradient=False)
        use = None
        if self.soft_table.is_conditional:
            use = self._scratch("chance of use", rows, self.soft_table.num_heads)
        return Soft(self.room("soft", rows), entropy, use)


class BranchingValue(OptionValues):
    """Q = V + A_1 + ... + A_H, or V + A_h for each head: for DQN and SAC.

    Each A_h is zero for the head's best option, so V is the greedy value. `BranchingCritic`, which
    PPO learns, has the same network and centers under the policy. There is one dueling network for
    all heads, or one for each. A subclass may combine V and advantages otherwise. See
    `OptionValues` for the arguments.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        *,
        copies: int = 1,
        adds_up: bool = True,
        independent: bool = False,
        room: Room | None = None,
        center: Center = "max",
    ) -> None:
        super().__init__(
            blueprint, copies=copies, adds_up=adds_up, independent=independent, room=room,
            center=center,
        )  # fmt: skip
        width = self.table.widest if independent else self.table.total
        self.net = Dueling(blueprint, self.input_widths, width, copies * self.stack)
        self.parts += self.net.parts
        self._first = list(range(self.stack))

    # --- what is learned ------------------------------------------------------------------------

    def predict(self, x: Buffer, action: Buffer, mask: Buffer | None) -> Buffer:
        """V and the centered advantages of the options taken, combined, (P, N, B, G)."""
        value, y, features = self.net.forward(self.inputs(x, action))  # V, A before centering
        q = self.room("q", x.num_rows)
        self.combine(value, self.chosen(y, action, mask), features, action, out=q)
        return q

    def backward(
        self, x: Buffer, action: Buffer, mask: Buffer | None, *, weights: bool = True
    ) -> None:
        """From the gradient of what was predicted to those of parameters and of the action."""
        value, y = self.net.rows(x.num_rows)
        chosen, q = self.by_head("advantage", x.num_rows), self.room("q", x.num_rows)
        self.combine_backward(value, chosen, out=q, weights=weights)
        self.back_to_advantages(y, action)
        self.net.backward(self.inputs(x, action), weights=weights)

    def combine(
        self, value: Buffer, advantage: Buffer, features: Buffer, action: Buffer, *, out: Buffer
    ) -> None:
        """Writes Q (P, N, B, G), given V, the heads' advantages and what both are made of."""
        ops.total(value, advantage, adds_up=self.adds_up, out=out)

    def combine_backward(
        self, value: Buffer, advantage: Buffer, *, out: Buffer, weights: bool
    ) -> None:
        """From the gradient of Q to those of V, of advantages and of a mixer's parameters."""
        ops.total.backward(value, advantage, adds_up=self.adds_up, out=out)

    # --- what is chosen -------------------------------------------------------------------------

    def greedy(self, x: Buffer, action: Buffer, mask: Buffer | None) -> None:
        """Writes the first copy's best options into actions whose real numbers are given."""
        self.best_of(self._first_advantages(x, action), mask, self.options(action))

    def greedy_value(self, x: Buffer, mask: Buffer | None) -> Buffer:
        """Of the best options, (P, N, B, 1), or each head's, (P, N, B, D): V if `center` is max."""
        if self.center != "max":
            best = self._scratch("best action", x.num_rows, self.num_discrete, gradient=False)
            self.greedy(x, best, mask)
            return self.predict(x, best, mask)
        value = self.net.value([x])
        if not self.independent:
            return value
        columns = self.room("greedy value", x.num_rows)
        ops.heads_last(value, out=columns)
        return columns

    def draw(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer, mask: Buffer | None
    ) -> None:
        """Writes options drawn from the first copy's softmax into actions."""
        y = self._first_advantages(x, action)
        out = [self.options(action), self._scratch("entropy drawn", x.num_rows, self.num_discrete)]
        given = None, self.options(alpha), self.options(uniform), mask
        ops.boltzmann(y, *given, table=self.table, out=out)

    def _first_advantages(self, x: Buffer, action: Buffer) -> Buffer:
        """Advantages of all options by the first copy."""
        inputs = self.inputs(x, action)
        if self.copies == 1:
            return self.net.advantages(inputs)
        return self.net.advantages(inputs, self._first).copies(0, self.stack)

    # --- soft values ----------------------------------------------------------------------------

    def soft(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer | None, mask: Buffer | None
    ) -> Soft:
        """V + sum_h alpha_h log sum_k exp(A_h(k) / alpha_h), with the entropies of the softmax."""
        value, y, _ = self.net.forward(self.inputs(x, action))
        soft = self.soft_room(x.num_rows)
        given = value, y, self.options(alpha), mask, None
        table, adds_up = self.soft_table, self.adds_up
        ops.soft_value(*given, table=table, adds_up=adds_up, plain=False, out=buffers_of(soft))
        return soft

    def soft_backward(self, x: Buffer, action: Buffer, alpha: Buffer, mask: Buffer | None) -> None:
        """From the gradients of soft value and use to that of the real numbers of actions."""
        given = *self.net.rows(x.num_rows), self.options(alpha), mask, None
        table, adds_up, out = self.soft_table, self.adds_up, buffers_of(self.soft_room(x.num_rows))
        ops.soft_value.backward(*given, table=table, adds_up=adds_up, plain=False, out=out)
        self.net.backward(self.inputs(x, action), weights=False)

    def log_policy(self, x: Buffer, action: Buffer, alpha: Buffer, mask: Buffer | None) -> Buffer:
        """Temperatures times the log-policies of the options taken, (P, N, B, D)."""
        out = self.by_head("log policy", x.num_rows)
        given = self.net.advantages(self.inputs(x, action)), self.options(action)
        ops.scaled_log_policy(*given, self.options(alpha), mask, table=self.table, out=out)
        return out


def buffers_of(soft: Soft) -> list[Buffer]:
    """The buffers that a soft value has."""
    return [x for x in soft if x is not None]
