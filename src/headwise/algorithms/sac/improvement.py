"""How an actor learns from its critics, which are constants to it."""

from __future__ import annotations

from headwise import ops
from headwise.algorithms.sac.sampler import ActionSampler
from headwise.factorizations.action_critic import ActionCritic
from headwise.heads.action_value import Soft, SoftValue
from headwise.heads.layout import Layout
from headwise.ops import Buffer, HeadTable, Queries, Scratch


class Pathwise:
    """The gradient of the soft value by way of the real numbers drawn.

    Without an actor nothing learns here, and the critics' own entropies are all there is.
    """

    def __init__(self, critic: SoftValue, sampler: ActionSampler) -> None:
        self.critic, self.sampler = critic, sampler
        members, device = sampler.action.members, sampler.action.device
        self.loss = Buffer(members, gradient=True, device=device)
        """Minus what the actor gains, (P, 1, 1, 1)."""
        self.loss.gradient.fill_(1.0)
        self._scratch = Scratch(members, device)

    def gradient(self, seen: Buffer, x: Buffer, mask: Buffer | None, alpha: Buffer) -> Soft:
        """From what actor and critics see of states to the gradient of the actor's parameters."""
        sampler = self.sampler
        soft = sampler.soft(self.critic, seen, x, alpha, mask)
        if sampler.actor is not None:
            ops.actor_loss(*sampler.gains(soft), out=self.loss)
            ops.actor_loss.backward(*sampler.gains(soft), out=self.loss)
            sampler.bonus_backward(alpha, soft)
            self.critic.soft_backward(x, sampler.action, alpha, mask)
            sampler.sample_backward(seen, mask)
        return soft


class Counterfactual(Pathwise):
    """The gradient of what each discrete head may expect while the other heads are as drawn.

    The critics evaluate every option of one head of each state. It is that of the expected
    value, on average over draws and states; numbers have theirs by way of the critics at the action
    drawn. An option that puts numbers in use also earns their entropy, which is part of the
    value that the critics learn. That of options in use has its gradient through the entropies.

    Args:
        critic: The twin critics of whole actions.
        queries: What critics evaluate.
    """

    critic: ActionCritic

    def __init__(
        self, critic: ActionCritic, sampler: ActionSampler, layout: Layout, queries: Queries
    ) -> None:
        super().__init__(critic, sampler)
        self._queries, count = queries, queries.count
        self._has_numbers = layout.num_continuous > 0
        self._expected, self._gain = (
            self._scratch(name, sampler.action.num_rows) for name in ("expected", "gain")
        )
        widths = {"obs": critic.leaves[0], "action": layout.num_heads}
        self._query_obs, self._query_action = (
            self._scratch(f"query {name}", count, width, gradient=False)
            for name, width in widths.items()
        )
        self._query_value = self._scratch(
            "query value", count, copies=critic.copies, gradient=False
        )
        self._conditions: HeadTable | None = None
        if layout.is_conditional and self._has_numbers:
            self._conditions = layout.table([(0, 0)] * layout.num_heads)

    def gradient(self, seen: Buffer, x: Buffer, mask: Buffer | None, alpha: Buffer) -> Soft:
        """From what actor and critics see of states to the gradient of the actor's parameters."""
        sampler, queries = self.sampler, self._queries
        assert sampler.draw is not None
        assert sampler.draw.log_probs is not None
        sampler.sample(seen, mask)
        ops.ask(x, queries=queries, substitute=False, out=self._query_obs)
        ops.ask(sampler.action, queries=queries, substitute=True, out=self._query_action)
        ops.copy(
            self.critic.predict(self._query_obs, self._query_action, None), out=self._query_value
        )
        given = sampler.draw.log_probs, self._query_value, self._entropy_of_queries(alpha)
        ops.expected_value(*given, queries=queries, out=self._expected)

        soft = Soft(self._expected, None, None)
        sampler.write_bonus(alpha, soft)
        _, bonus, _ = sampler.gains(soft)
        if self._has_numbers:
            soft = Soft(self.critic.predict(x, sampler.action, mask), None, None)
            ops.add(self._expected, bonus, out=self._gain)
        gains = soft.value, self._gain if self._has_numbers else bonus, None
        ops.actor_loss(*gains, out=self.loss)
        ops.actor_loss.backward(*gains, out=self.loss)
        if self._has_numbers:
            ops.add.backward(self._expected, bonus, out=self._gain)
            self.critic.backward(x, sampler.action, mask, weights=False)
        sampler.bonus_backward(alpha, soft)
        ops.expected_value.backward(*given, queries=queries, out=self._expected)
        sampler.sample_backward(seen, mask)
        return soft

    def _entropy_of_queries(self, alpha: Buffer) -> Buffer | None:
        """The bonus for the entropies of numbers that a query's option puts in use."""
        draw = self.sampler.draw
        if self._conditions is None or draw is None or draw.neg_log_prob is None:
            return None
        shape = self._queries.count, self._query_action.width
        numbers, use, bonus = (
            self._scratch(name, *shape, gradient=False) for name in ("numbers", "use", "bonus")
        )
        ops.ask(draw.neg_log_prob, queries=self._queries, substitute=False, out=numbers)
        ops.in_use(self._query_action, table=self._conditions, out=use)
        ops.entropy_bonus(numbers, alpha, use, adds_up=False, out=bonus)
        return bonus


class StraightThrough(Pathwise):
    """The gradient of the critics by relaxed options, which are drawn anew: one evaluation, biased.

    Args:
        critic: The twin critics of whole actions.
        sampler: Draws the actions; its extra noise is that of the options.
        softness: The temperature of relaxed options, (P, 1, 1, 1).
    """

    critic: ActionCritic

    def __init__(
        self, critic: ActionCritic, sampler: ActionSampler, layout: Layout, softness: Buffer
    ) -> None:
        super().__init__(critic, sampler)
        self._softness, rows = softness, sampler.action.num_rows
        self._table = layout.table(layout.side_by_side(), "discrete", conditional=False)
        self._options = self._scratch("options", rows, layout.total)
        self._relaxed = [self._options, sampler.action.columns(0, layout.num_discrete)]

    def gradient(self, seen: Buffer, x: Buffer, mask: Buffer | None, alpha: Buffer) -> Soft:
        """From what actor and critics see of states to the gradient of the actor's parameters."""
        sampler = self.sampler
        assert sampler.draw is not None
        assert sampler.draw.log_probs is not None
        assert sampler.extra is not None
        sampler.sample(seen, mask)
        given = sampler.draw.log_probs, sampler.extra, self._softness
        ops.relax(*given, table=self._table, out=self._relaxed)
        soft = Soft(self.critic.predict_relaxed(x, sampler.action, self._options), None, None)
        sampler.write_bonus(alpha, soft)

        ops.actor_loss(*sampler.gains(soft), out=self.loss)
        ops.actor_loss.backward(*sampler.gains(soft), out=self.loss)
        sampler.bonus_backward(alpha, soft)
        self.critic.backward_relaxed(x, sampler.action, self._options)
        ops.relax.backward(*given, table=self._table, out=self._relaxed)
        sampler.sample_backward(seen, mask)
        return soft
