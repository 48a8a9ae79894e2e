"""The policy of SAC: how it draws actions, and how an actor learns from critics.

An `ActionSampler` draws the actions of a batch and adds the entropy bonus. `Pathwise` goes from
there to the gradient of the actor's parameters, and `Counterfactual` and `StraightThrough` do where
the actor has discrete heads. Critics are constants to all of this.
"""

from __future__ import annotations

from headwise import ops
from headwise.factorizations.action_critic import ActionCritic
from headwise.heads.action_value import Actor, Soft, SoftValue
from headwise.heads.layout import Layout
from headwise.ops import Buffer, Draw, HeadTable, Queries, Scratch


class ActionSampler:
    """Draws actions, with their entropies and the bonus for those, (P, 1, B, ...) each.

    Discrete heads come first. Critics choose the heads before `first`, by a softmax of options'
    values; the actor draws the others. An actor draws before critics choose, because critics see
    its real numbers.

    A head is in use if its condition holds, for example "this number, if the first head chose
    option 2". The entropy of a head counts as much as the head is likely to be in use.

    Args:
        actor: Draws the heads from `first` on; None where critics choose all.
        first: The first head of the actor.
        independent: Whether each head has a bonus for its own entropy alone.
        extra: Columns of noise in front of those that actions are drawn by.
    """

    def __init__(
        self,
        layout: Layout,
        members: int,
        rows: int,
        actor: Actor | None,
        first: int,
        *,
        independent: bool,
        extra: int = 0,
    ) -> None:
        def buffer(width: int) -> Buffer:
            return Buffer(members, rows, width, gradient=True, device=layout.device)

        num_heads = layout.num_heads
        self.layout, self.actor, self.independent = layout, actor, independent
        self._first = first
        self._of_actor = first, num_heads - first
        """The columns of the actor's heads: where they begin, and how many there are."""
        num_uniforms = 0 if actor is None else actor.table.num_uniforms
        self.noise = Buffer(members, rows, extra + first + num_uniforms, device=layout.device)
        """Uniform numbers: the extra ones, those of discrete heads, those of continuous ones."""
        self.extra = self.noise.columns(0, extra) if extra else None
        self.uniform = self.noise.columns(extra, first + num_uniforms)
        """Those that actions are drawn by."""
        self._actor_uniform = self.uniform.columns(first, num_uniforms) if num_uniforms else None
        self.action = buffer(num_heads)
        """In unit form, in the learner's order."""
        self.entropy = buffer(num_heads)
        """Of each head; the draw writes those of the actor's, `weigh_entropies` the others."""
        self._bonus = buffer(num_heads if independent else 1)
        whole = actor is None or not independent
        self._actor_bonus = self._bonus if whole else self._bonus.columns(*self._of_actor)
        self._scratch = Scratch(members, layout.device)
        self.draw: Draw | None = None
        """What the actor has drawn, if there is one."""
        if actor is not None:
            self.draw = Draw(
                actor.table, members, rows, unit=self.action.columns(*self._of_actor),
                entropy=self.entropy.columns(*self._of_actor), device=layout.device,
            )  # fmt: skip

    # --- drawing --------------------------------------------------------------------------------

    def sample(self, obs: Buffer, mask: Buffer | None) -> None:
        """Draws what the actor draws."""
        if self.actor is not None and self.draw is not None and self._actor_uniform is not None:
            self.actor.rsample(obs, self._actor_uniform, self._actor_mask(mask), self.draw)

    def sample_backward(self, obs: Buffer, mask: Buffer | None) -> None:
        """From the gradients of what was drawn to those of the actor's parameters."""
        if self.actor is not None and self.draw is not None and self._actor_uniform is not None:
            self.actor.rsample_backward(obs, self._actor_uniform, self._actor_mask(mask), self.draw)

    def mode(self, obs: Buffer, mask: Buffer | None) -> None:
        """Writes the greedy actions of the actor's heads."""
        if self.actor is not None and self.draw is not None:
            raw = self.entropy.columns(*self._of_actor)  # raw actions and entropies are not used
            self.actor.mode(obs, self._actor_mask(mask), [raw, self.draw.unit])

    def _actor_mask(self, mask: Buffer | None) -> Buffer | None:
        """The mask of an actor that has discrete heads."""
        return mask if self._first == 0 else None

    def allowed(self, mask: Buffer | None) -> Buffer | None:
        """Which options heads had when the actions were drawn: entropy has to reach no further."""
        links = self.layout.links
        if links is None:
            return mask
        allowed = self._scratch("allowed", self.action.num_rows, self.layout.total, gradient=False)
        ops.legal_options(self.action, mask, links=links, out=allowed)
        return allowed

    # --- soft values: Q of the actions drawn, and the entropy bonus -------------------------------

    def soft(
        self, critic: SoftValue, seen: Buffer, x: Buffer, alpha: Buffer, mask: Buffer | None
    ) -> Soft:
        """Draws actions, and values states by them; `bonus` is to be added.

        Args:
            critic: The twin critics.
            seen: What the actor sees of states.
            x: What critics see of them.
            alpha: Temperatures.
            mask: Which options may be chosen.
        """
        self.sample(seen, mask)
        soft = critic.soft(x, self.action, alpha, self.uniform, mask)
        self.write_bonus(alpha, soft)
        return soft

    @property
    def bonus(self) -> Buffer | None:
        """The bonus for the entropies of the actor's heads, (P, 1, B, G).

        None without an actor: the soft value of critics that choose has their entropies in it.
        """
        return None if self.actor is None else self._bonus

    def write_bonus(self, alpha: Buffer, soft: Soft) -> None:
        """Bonus = sum_h alpha_h entropy_h over the actor's heads, or of each head by itself."""
        if self.draw is not None:
            inputs, adds_up = self._bonus_inputs(alpha, soft), not self.independent
            ops.entropy_bonus(*inputs, adds_up=adds_up, out=self._actor_bonus)

    def bonus_backward(self, alpha: Buffer, soft: Soft) -> None:
        """From the gradient of the bonus to those of entropies, and of use."""
        if self.draw is not None:
            inputs, adds_up = self._bonus_inputs(alpha, soft), not self.independent
            ops.entropy_bonus.backward(*inputs, adds_up=adds_up, out=self._actor_bonus)

    def _bonus_inputs(self, alpha: Buffer, soft: Soft) -> tuple[Buffer, Buffer, Buffer | None]:
        """Entropies, temperatures and chances of use of the actor's heads."""
        use = None if soft.use is None or self.independent else soft.use.columns(*self._of_actor)
        return self.entropy.columns(*self._of_actor), alpha.columns(*self._of_actor), use

    def loss_inputs(self, soft: Soft) -> tuple[Buffer, Buffer, Buffer | None]:
        """What `ops.actor_loss` takes: values, the bonus, and weights if gains count unlike.

        Actors of heads that are learners of their own learn as much as those are in use.
        """
        if not self.independent:
            return soft.value, self._bonus, None
        use = None if soft.use is None else soft.use.columns(*self._of_actor)
        return soft.value.columns(*self._of_actor), self._actor_bonus, use

    # --- what temperatures learn from -------------------------------------------------------------

    def use(self, soft: Soft) -> Buffer | None:
        """How likely each head is to be in use, (P, 1, B, H); None: all always are."""
        if soft.use is not None or self.draw is None:
            return soft.use
        return self.draw.activity

    def weigh_entropies(self, soft: Soft) -> Buffer:
        """The entropies of all heads, weighted with how likely they are to be in use.

        It changes `entropy` in place, so call it once, after the backward pass.
        """
        if soft.entropy is not None:
            ops.copy(soft.entropy, out=self.entropy.columns(0, self._first))
        if soft.use is not None and self.actor is not None:
            of_actor = self.entropy.columns(*self._of_actor)
            ops.multiply(of_actor, soft.use.columns(*self._of_actor), out=of_actor)
        return self.entropy


# --- how the actor learns -------------------------------------------------------------------------


class Pathwise:
    """The pathwise gradient: through the real numbers drawn, as in SAC.

    loss = -E[min_n Q_n(s, a) + sum_h alpha_h entropy_h], where a is a function of the noise. It is
    for critics that choose the discrete heads: their soft value is in closed form, and the actor's
    real numbers are inputs of it. Without an actor nothing learns here.
    """

    def __init__(self, critic: SoftValue, sampler: ActionSampler) -> None:
        self.critic, self.sampler = critic, sampler
        members, device = sampler.action.members, sampler.action.device
        self.loss = Buffer(members, gradient=True, device=device)
        """(P, 1, 1, 1)."""
        self.loss.gradient.fill_(1.0)
        self._scratch = Scratch(members, device)

    def gradient(self, seen: Buffer, x: Buffer, mask: Buffer | None, alpha: Buffer) -> Soft:
        """From what actor and critics see of states to the gradient of the actor's parameters."""
        sampler = self.sampler
        soft = sampler.soft(self.critic, seen, x, alpha, mask)
        if sampler.actor is not None:
            ops.actor_loss(*sampler.loss_inputs(soft), out=self.loss)
            ops.actor_loss.backward(*sampler.loss_inputs(soft), out=self.loss)
            sampler.bonus_backward(alpha, soft)
            self.critic.soft_backward(x, sampler.action, alpha, mask)
            sampler.sample_backward(seen, mask)
        return soft


class Counterfactual(Pathwise):
    """The gradient of what each discrete head may expect while the other heads are as drawn.

    expected = sum_h sum_k pi_h(k | s) min_n Q_n(s, k, a_-h), where a_-h are the other heads' drawn
    actions. Its gradient by pi is that of E[Q], on average over draws. To save time each state is
    queried for one head only, which stands for as many states as there are between its turns.
    Real numbers learn by the pathwise gradient: min_n Q_n(s, a) is part of the loss as well.

    So the loss (`train/actor_loss`) is not -E[Q + entropy bonus], though its gradient is that: it
    has Q once for each discrete head, and once more where there are continuous ones.

    An option that puts real numbers in use also earns their entropy, which is part of the value
    that critics learn. That of heads already in use has its gradient through the bonus.

    Args:
        critic: The twin critics of whole actions.
        queries: Which option of which state critics evaluate.
    """

    critic: ActionCritic

    def __init__(
        self, critic: ActionCritic, sampler: ActionSampler, layout: Layout, queries: Queries
    ) -> None:
        super().__init__(critic, sampler)
        rows, count, scratch = sampler.action.num_rows, queries.count, self._scratch
        self._queries = queries
        self._has_numbers = layout.num_continuous > 0
        self._expected = scratch("expected", rows)
        self._gain = scratch("gain", rows)
        self._query_obs = scratch("query obs", count, critic.input_widths[0], gradient=False)
        self._query_action = scratch("query action", count, layout.num_heads, gradient=False)
        self._query_q = scratch("query q", count, copies=critic.copies, gradient=False)
        self._conditions: HeadTable | None = None
        if layout.is_conditional and self._has_numbers:
            self._conditions = layout.bare_table()

    def gradient(self, seen: Buffer, x: Buffer, mask: Buffer | None, alpha: Buffer) -> Soft:
        """From what actor and critics see of states to the gradient of the actor's parameters."""
        sampler, queries = self.sampler, self._queries
        assert sampler.draw is not None
        assert sampler.draw.log_probs is not None
        sampler.sample(seen, mask)
        ops.ask(x, queries=queries, substitute=False, out=self._query_obs)
        ops.ask(sampler.action, queries=queries, substitute=True, out=self._query_action)
        q = self.critic.predict(self._query_obs, self._query_action, None)  # (P, 2, queries, 1)
        ops.copy(q, out=self._query_q)  # the next prediction would overwrite it
        expected_inputs = sampler.draw.log_probs, self._query_q, self._entropy_of_queries(alpha)
        ops.expected_value(*expected_inputs, queries=queries, out=self._expected)

        soft = Soft(self._expected, None, None)
        sampler.write_bonus(alpha, soft)
        _, bonus, _ = sampler.loss_inputs(soft)
        if self._has_numbers:  # loss = -E[min_n Q_n(s, a) + expected + bonus]
            soft = Soft(self.critic.predict(x, sampler.action, mask), None, None)
            ops.add(self._expected, bonus, out=self._gain)
        loss_inputs = soft.value, self._gain if self._has_numbers else bonus, None
        ops.actor_loss(*loss_inputs, out=self.loss)
        ops.actor_loss.backward(*loss_inputs, out=self.loss)
        if self._has_numbers:
            ops.add.backward(self._expected, bonus, out=self._gain)
            self.critic.backward(x, sampler.action, mask, weights=False)
        sampler.bonus_backward(alpha, soft)
        ops.expected_value.backward(*expected_inputs, queries=queries, out=self._expected)
        sampler.sample_backward(seen, mask)
        return soft

    def _entropy_of_queries(self, alpha: Buffer) -> Buffer | None:
        """The bonus for the entropies of real numbers that a query's option puts in use."""
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
    """The critics' gradient by relaxed options, as in the paper: one evaluation, biased.

    loss = -E[min_n Q_n(s, a) + sum_h alpha_h entropy_h], where critics see one-hot options with the
    gradient of a Gumbel-softmax. Those options are drawn anew, by the sampler's extra noise.

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
        self._softness = softness
        rows = sampler.action.num_rows
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
        relax_inputs = sampler.draw.log_probs, sampler.extra, self._softness
        ops.relax(*relax_inputs, table=self._table, out=self._relaxed)
        q = self.critic.predict_relaxed(x, sampler.action, self._options)
        soft = Soft(q, None, None)
        sampler.write_bonus(alpha, soft)

        ops.actor_loss(*sampler.loss_inputs(soft), out=self.loss)
        ops.actor_loss.backward(*sampler.loss_inputs(soft), out=self.loss)
        sampler.bonus_backward(alpha, soft)
        self.critic.backward_relaxed(x, sampler.action, self._options)
        ops.relax.backward(*relax_inputs, table=self._table, out=self._relaxed)
        sampler.sample_backward(seen, mask)
        return soft
