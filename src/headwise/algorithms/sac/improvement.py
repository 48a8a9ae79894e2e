"""How an actor learns from its critics, which are constants to it."""

from __future__ import annotations

from headwise import ops
from headwise.algorithms.sac.drawn import Drawn
from headwise.factorizations.action_critic import ActionCritic
from headwise.heads.action_value import Soft, SoftValue
from headwise.heads.layout import Layout
from headwise.ops import Buffer, HeadTable, Queries, Scratch


class Pathwise:
    """The gradient of the soft value by way of the real numbers drawn.

    Without an actor nothing learns here, and the critics' own entropies are all there is.

    Args:
        critic: The twin critics.
        drawn: Where actions are drawn.
    """

    def __init__(self, critic: SoftValue, drawn: Drawn) -> None:
        self.critic, self.drawn = critic, drawn
        members, device = drawn.action.members, drawn.action.device
        self.loss = Buffer(members, gradient=True, device=device)
        """Minus what the actor gains, (P, 1, 1, 1)."""
        self.loss.gradient.fill_(1.0)
        self._scratch = Scratch(members, device)

    def gradient(self, obs: Buffer, mask: Buffer | None, alpha: Buffer) -> Soft:
        """From states to the gradient of the actor's parameters."""
        drawn = self.drawn
        soft = drawn.soft(self.critic, obs, alpha, mask)
        if drawn.actor is not None:
            ops.actor_loss(*drawn.gains(soft), out=self.loss)
            ops.actor_loss.backward(*drawn.gains(soft), out=self.loss)
            drawn.pay_back(alpha, soft)
            self.critic.soft_backward(obs, drawn.action, alpha, mask)
            drawn.sample_backward(obs, mask)
        return soft


class Counterfactual(Pathwise):
    """The gradient of what each discrete head may expect while the other heads are as drawn.

    The critics are asked about every option of one head of each state. It is that of the expected
    value, on average over draws and states; numbers have theirs by way of the critics at the action
    drawn. An option that puts numbers in use is also worth their entropy, which is part of the
    value that the critics learn. That of options in use has its gradient through the entropies.

    Args:
        critic: The twin critics of whole actions.
        drawn: Where actions are drawn.
        layout: The heads.
        queries: What critics are asked.
    """

    critic: ActionCritic

    def __init__(
        self, critic: ActionCritic, drawn: Drawn, layout: Layout, queries: Queries
    ) -> None:
        super().__init__(critic, drawn)
        self._queries, count = queries, queries.count
        self._has_numbers = layout.num_continuous > 0
        self._expected, self._gain = (
            self._scratch(name, drawn.action.num_rows) for name in ("expected", "gain")
        )
        widths = {"obs": critic.leaves[0], "action": layout.num_heads}
        self._asked, self._answered = (
            self._scratch(f"asked {name}", count, width, gradient=False)
            for name, width in widths.items()
        )
        self._found = self._scratch("found", count, copies=critic.copies, gradient=False)
        self._conditions: HeadTable | None = None
        if layout.is_conditional and self._has_numbers:
            self._conditions = layout.table([(0, 0)] * layout.num_heads)

    def gradient(self, obs: Buffer, mask: Buffer | None, alpha: Buffer) -> Soft:
        """From states to the gradient of the actor's parameters."""
        drawn, queries = self.drawn, self._queries
        assert drawn.draw is not None
        assert drawn.draw.log_probs is not None
        drawn.sample(obs, mask)
        ops.ask(obs, queries=queries, substitute=False, out=self._asked)
        ops.ask(drawn.action, queries=queries, substitute=True, out=self._answered)
        ops.copy(self.critic.predict(self._asked, self._answered, None), out=self._found)
        given = drawn.draw.log_probs, self._found, self._paid(alpha)
        ops.expected_value(*given, queries=queries, out=self._expected)

        soft = Soft(self._expected, None, None)
        drawn.pay(alpha, soft)
        _, bonus, _ = drawn.gains(soft)
        if self._has_numbers:
            soft = Soft(self.critic.predict(obs, drawn.action, mask), None, None)
            ops.add(self._expected, bonus, out=self._gain)
        gains = soft.value, self._gain if self._has_numbers else bonus, None
        ops.actor_loss(*gains, out=self.loss)
        ops.actor_loss.backward(*gains, out=self.loss)
        if self._has_numbers:
            ops.add.backward(self._expected, bonus, out=self._gain)
            self.critic.backward(obs, drawn.action, mask, weights=False)
        drawn.pay_back(alpha, soft)
        ops.expected_value.backward(*given, queries=queries, out=self._expected)
        drawn.sample_backward(obs, mask)
        return soft

    def _paid(self, alpha: Buffer) -> Buffer | None:
        """What the entropies of numbers are worth that the options asked about put in use."""
        draw = self.drawn.draw
        if self._conditions is None or draw is None or draw.neg_log_prob is None:
            return None
        shape = self._queries.count, self._answered.width
        numbers, use, paid = (
            self._scratch(name, *shape, gradient=False) for name in ("numbers", "use", "paid")
        )
        ops.ask(draw.neg_log_prob, queries=self._queries, substitute=False, out=numbers)
        ops.in_use(self._answered, table=self._conditions, out=use)
        ops.entropy_bonus(numbers, alpha, use, adds_up=False, out=paid)
        return paid


class StraightThrough(Pathwise):
    """The gradient of the critics by relaxed options, which are drawn anew: one evaluation, biased.

    Args:
        critic: The twin critics of whole actions.
        drawn: Where actions are drawn; its extra noise is that of the options.
        layout: The heads.
        softness: The temperature of relaxed options, (P, 1, 1, 1).
    """

    critic: ActionCritic

    def __init__(
        self, critic: ActionCritic, drawn: Drawn, layout: Layout, softness: Buffer
    ) -> None:
        super().__init__(critic, drawn)
        self._softness, rows = softness, drawn.action.num_rows
        self._table = layout.table(layout.side_by_side(), "discrete", conditional=False)
        self._options = self._scratch("options", rows, layout.total)
        self._relaxed = [self._options, drawn.action.columns(0, layout.num_discrete)]

    def gradient(self, obs: Buffer, mask: Buffer | None, alpha: Buffer) -> Soft:
        """From states to the gradient of the actor's parameters."""
        drawn = self.drawn
        assert drawn.draw is not None
        assert drawn.draw.log_probs is not None
        assert drawn.extra is not None
        drawn.sample(obs, mask)
        given = drawn.draw.log_probs, drawn.extra, self._softness
        ops.relax(*given, table=self._table, out=self._relaxed)
        soft = Soft(self.critic.predict_relaxed(obs, drawn.action, self._options), None, None)
        drawn.pay(alpha, soft)

        ops.actor_loss(*drawn.gains(soft), out=self.loss)
        ops.actor_loss.backward(*drawn.gains(soft), out=self.loss)
        drawn.pay_back(alpha, soft)
        self.critic.backward_relaxed(obs, drawn.action, self._options)
        ops.relax.backward(*given, table=self._table, out=self._relaxed)
        drawn.sample_backward(obs, mask)
        return soft
