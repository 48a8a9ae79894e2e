"""The SAC learner. Read `gradient_step`; `algorithms/__init__.py` says how to read a step.

The factorization says which heads an actor draws; critics choose the others, by a softmax of
options' values. Two defaults depart from the paper's method, for reasons that the settings tell:
`SAC(entropy_bonus="whole", actor_gradient="straight_through")` has both as in the paper.

Each of the twins is valued under its own softmax, of which the smaller counts, and actions follow
the first. So targets are a little higher than those of a discrete SAC, whose twins are valued under
one policy. With n-step returns the entropies of the steps between are left out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from headwise import ops
from headwise.algorithms.off_policy import OffPolicyLearner
from headwise.algorithms.sac.actor import (
    ActionSampler,
    Counterfactual,
    Pathwise,
    StraightThrough,
)
from headwise.factorizations.action_critic import ActionCritic
from headwise.heads.action_value import Actor
from headwise.heads.layout import Layout
from headwise.nets.encoders import with_encoder
from headwise.ops import Buffer, Queries, Scratch
from headwise.ops.functions import indices
from headwise.ops.values import LOSS
from headwise.population.keys import Keys, Stream
from headwise.population.store import Adam, Free, Store, settings

if TYPE_CHECKING:
    from headwise.algorithms.base import Metrics, Task
    from headwise.algorithms.sac import SAC

RUNAWAY = 50.0
"""A temperature above this drowns any reward: its target entropy cannot be reached."""

_FIRST_LAYER_OF_CRITICS = 1000
"""A layer's number is its address among the random numbers that layers begin with (`Store`). An
actor's layers count from 0 and are far fewer, so no layer of a critic begins like one of them."""


class SACLearner(OffPolicyLearner):
    """A population of SAC learners."""

    def __init__(self, config: SAC, task: Task) -> None:
        super().__init__(config, task)
        self.config = config
        kind, keys, layout = task.factorization, task.keys, self.layout
        self._first = 0 if kind.chooses == "none" else layout.num_discrete
        """The first head that an actor draws; critics choose those before it."""
        draws_options = self._first < layout.num_discrete
        counterfactual = config.actor_gradient == "counterfactual"
        self._relaxes = draws_options and not counterfactual
        self._queries: Queries | None = None
        if draws_options and counterfactual:
            self._queries = Queries(layout.bare_table(), config.batch_size)
        self.encoder, self.encoder_target = (
            self.make_encoder(0, shift=config.random_shift) for _ in range(2)
        )
        """What reads observations for critics, if anything has to."""
        self.actor_encoder = self.encoder
        """And for the actor, which learns nothing of it where it is that of critics."""
        if self._first < layout.num_heads and not config.share_encoder:
            self.actor_encoder = self.make_encoder(1, shift=config.random_shift)
        blueprint = self.blueprint(
            config.batch_size, net_arch=config.net_arch, activation=config.activation,
            branch_width=config.branch_width, state_std=True, log_std=(-5.0, 1.0),
            policy_gain=config.policy_gain,
        )  # fmt: skip
        num_queries = 0 if self._queries is None else self._queries.count
        of_critics = replace(blueprint, rows=max(blueprint.rows, num_queries))
        self.critic, self.critic_target = kind.twins(of_critics), kind.twins(of_critics)
        """The twin critics, and the target networks that follow them."""
        parts = with_encoder(self.critic.parts, self.encoder)
        self.store = Store(keys, parts, _FIRST_LAYER_OF_CRITICS)
        parts = with_encoder(self.critic_target.parts, self.encoder_target)
        self.target_store = Store(keys, parts, _FIRST_LAYER_OF_CRITICS)
        learning_rate, max_norm = self.setting("learning_rate"), config.max_grad_norm
        self.optimizers = {"critic": Adam(self.store, learning_rate, max_norm=max_norm)}
        alive = self.optimizers["critic"].alive  # a member diverges in everything at once
        self.actor: Actor | None = None
        if self._first < layout.num_heads:
            self.actor = kind.actor(blueprint)
            scaled = self.setting("learning_rate", config.actor_lr_scale)
            own = None if self._has_one_encoder else self.actor_encoder
            parts = with_encoder(self.actor.parts, own)
            self.optimizers["actor"] = Adam(
                Store(keys, parts), scaled, max_norm=max_norm, alive=alive
            )
        self.temperatures = Temperatures(config, layout, keys, learning_rate, alive)
        self._set_spans(task.total_steps)
        self.optimizers["alpha"] = self.temperatures.optimizer
        self.critic_loss = self._scratch("critic loss", 1, 3, copies=2)
        self.critic_loss.gradient[..., LOSS] = 1.0  # dL/dL
        self.q_values = self._scratch("q", 1, self.critic.num_values, copies=2, gradient=False)
        self.softness = self._scratch("softness", 1, gradient=False)
        self._allocate(masked=layout.always_masks)

    def _allocate(self, *, masked: bool) -> None:
        """Makes room for batches with or without masks, and records anew."""
        super()._allocate(masked=masked)
        layout, rows, count = self.layout, self.config.batch_size, self.critic.num_values
        self.target = self._scratch("target", rows, count, gradient=False)
        self._even_weights = self._scratch("even weights", rows, count, gradient=False)
        self._even_weights.tensor.fill_(1.0 / rows)

        def sampler(rows: int, extra: int = 0) -> ActionSampler:
            return ActionSampler(
                layout, self.keys.num_members, rows, self.actor, self._first,
                independent=self.critic.independent, extra=extra,
            )  # fmt: skip

        relaxed = layout.num_discrete * max(layout.sizes) if self._relaxes else 0
        self.next_sampler = sampler(rows)
        """Draws the policy's actions in a batch's next states."""
        self.sampler = sampler(rows, relaxed)
        """Draws them in its states."""
        self._act_sampler = sampler(self.num_envs)
        self.improvement = self._improvement()
        self.noise = self._act_sampler.noise
        self._record()

    def _set_spans(self, total_steps: int) -> None:
        num_updates = max(total_steps * self.config.updates_per_step, 1.0)
        self.temperatures.span = self.config.target_entropy_share * num_updates

    def _record(self) -> None:
        super()._record()
        self._record_acting(self._act_sampler.action)

    def _improvement(self) -> Pathwise:
        """How the actor learns."""
        if isinstance(self.critic, ActionCritic) and self._queries is not None:
            return Counterfactual(self.critic, self.sampler, self.layout, self._queries)
        if isinstance(self.critic, ActionCritic) and self._relaxes:
            return StraightThrough(self.critic, self.sampler, self.layout, self.softness)
        return Pathwise(self.critic, self.sampler)

    # --- acting ---------------------------------------------------------------------------------

    def _draw(self) -> None:
        sampler = self._act_sampler
        alpha = self.temperatures.now(self.updates)
        actor_sees, x = self._both_see(self.obs, "act")
        sampler.sample(actor_sees, self.mask)
        self.critic.draw(x, sampler.action, alpha, sampler.uniform, self.mask)

    def _greedy(self) -> None:
        actor_sees, x = self._both_see(self.obs, "act")
        self._act_sampler.mode(actor_sees, self.mask)
        self.critic.greedy(x, self._act_sampler.action, self.mask)

    @property
    def _has_one_encoder(self) -> bool:
        """Whether actor and critics see the same of an observation."""
        return self.actor_encoder is self.encoder

    def _both_see(self, obs: Buffer, name: str) -> tuple[Buffer, Buffer]:
        """What the actor sees of observations, and critics where they choose anything."""
        actor_sees = self._seen(self.actor_encoder, obs, name)
        if self._has_one_encoder or not self._first:
            return actor_sees, actor_sees
        return actor_sees, self._seen(self.encoder, obs, name)

    def _chosen(self, *, greedy: bool) -> Tensor:
        return self.layout.from_learner(self._act_sampler.action.tensor[:, 0])

    # --- learning -------------------------------------------------------------------------------

    def gradient_step(self) -> None:
        """Twin critics on a soft target, then the actor, then the temperatures."""
        batch, sampler, next_sampler = self.batch, self.sampler, self.next_sampler
        alpha = self.temperatures.now(self.updates)
        self._draw_shifts()

        # y = r + discount (min_n soft_n(s') + sum_h alpha_h (entropy_h(s') - target entropy_h)).
        # soft_n is Q_n(s', a') of heads that the actor draws. Over heads that critics choose it is
        # V_n + sum_h alpha_h log sum_k exp(A_h(k) / alpha_h), which has their entropy in it.
        ops.uniform(next_sampler.noise, self.seeds, self.updates, Stream.TARGET)
        x = self._seen(self.encoder_target, batch.next_obs, "next")
        actor_sees = (
            x if self.actor is None else self._seen(self.actor_encoder, batch.next_obs, "drawn")
        )
        soft = next_sampler.soft(self.critic_target, actor_sees, x, alpha, batch.next_mask)
        next_value = soft.value, next_sampler.bonus, self._expected_bonus(alpha)
        ops.td_target(batch.reward, batch.discount, *next_value, out=self.target)

        # loss = sum_n E[(Q_n(s, a) - y)^2]
        x = self._seen(self.encoder, batch.obs, "x", learns=True)
        q = self.critic.predict(x, batch.action, batch.mask)  # (P, 2, B, G)
        ops.row_mean(q, out=self.q_values)
        error_inputs = q, self.target, self._row_weights()
        ops.value_error(*error_inputs, coef=1.0, huber=False, out=self.critic_loss)
        ops.value_error.backward(*error_inputs, coef=1.0, huber=False, out=self.critic_loss)
        self.critic.backward(x, batch.action, batch.mask)
        if self.encoder is not None:
            self.encoder.backward(x)
        # The target networks follow in the same step: nothing below reads them.
        self.optimizers["critic"].step(self.target_store, self.config.tau)

        # loss = -E[min_n Q_n(s, a) + sum_h alpha_h entropy_h(s)] of actions drawn; see `actor.py`
        ops.uniform(sampler.noise, self.seeds, self.updates, Stream.ACTOR)
        self._soften()
        actor_sees, x = self._for_improvement(x)
        soft = self.improvement.gradient(actor_sees, x, batch.mask, alpha)
        if self.actor_encoder is not None and not self._has_one_encoder:
            self.actor_encoder.backward(actor_sees)
        if self.actor is not None:
            self.optimizers["actor"].step()

        # loss = sum_h log alpha_h (entropy_h - target entropy_h)
        use, entropies = sampler.use(soft), sampler.weigh_entropies(soft)
        self.temperatures.step(entropies, use, sampler.allowed(batch.mask))
        ops.advance(self.updates)

    def _for_improvement(self, x: Buffer) -> tuple[Buffer, Buffer]:
        """What the actor sees of the batch, and critics as a constant, for what they have seen.

        A shared encoder is that of the critics: what it shows the actor is a constant too.
        """
        if self.encoder is None:
            return x, x
        held = self._scratch("held", x.num_rows, x.width, gradient=False)
        ops.copy(x, out=held)
        if self._has_one_encoder:
            return held, held
        return self._seen(self.actor_encoder, self.batch.obs, "learns", learns=True), held

    def _expected_bonus(self, alpha: Buffer) -> Buffer | None:
        """The bonus of an entropy that meets its target, (P, 1, 1 or B, G): it is subtracted.

        A head that is seldom in use adds as little, unless it is a learner of its own. How seldom
        is a mean over the actions of the batch, which stands for every next state: right on
        average, and only nearly so where use depends on the state.
        """
        if self.config.entropy_bonus == "whole":
            return None
        target = self.temperatures.target(self.next_sampler.allowed(self.batch.next_mask))
        use = None if self.critic.independent else self._mean_use()
        rows = target.num_rows
        expected = self._scratch("expected", rows, self.critic.num_values, gradient=False)
        ops.entropy_bonus(target, alpha, use, adds_up=not self.critic.independent, out=expected)
        return expected

    def _mean_use(self) -> Buffer | None:
        use = self._use()
        if use is None:
            return None
        mean = self._scratch("mean use", 1, self.layout.num_heads, gradient=False)
        ops.row_mean(use, out=mean)
        return mean

    def _row_weights(self) -> Buffer:
        """What each error counts, (P, 1, B, G): 1 / B, and nothing where its head is not in use."""
        use = self._use() if self.critic.independent else None
        if use is None:
            return self._even_weights
        weights = self._scratch("weights", *self.target.tensor.shape[-2:], gradient=False)
        ops.multiply(use, self._even_weights, out=weights)
        return weights

    def _soften(self) -> None:
        """How soft relaxed options are by now."""
        if self._relaxes:
            start, decay, floor = (
                getattr(self.config, f"gumbel_{name}") for name in ("start", "decay", "floor")
            )
            ops.decaying(self.updates, start=start, decay=decay, floor=floor, out=self.softness)

    def metrics(self) -> Metrics:
        """What the last update reports: (P,) for a member, (P, H) for its heads."""
        metrics = {
            "train/critic_loss": self.critic_loss.tensor[..., LOSS].sum((-2, -1)),
            "train/q_values": self.q_values.tensor.mean((-3, -2, -1)),
            "train/grad_norm": self.optimizers["critic"].norm.tensor.flatten().clone(),
        }
        if self.actor is not None:
            metrics["train/actor_loss"] = self.improvement.loss.tensor.flatten().clone()
        metrics |= self.temperatures.metrics() | self._followed()
        return {
            name: self.layout.heads_in_order(x) if name.startswith("heads/") else x
            for name, x in metrics.items()
        }


def begins_at(ent_coef: float | str) -> tuple[float, bool]:
    """Where temperatures begin, and whether they are learned from there."""
    if isinstance(ent_coef, str):
        return float(ent_coef.removeprefix("auto_")), True
    return ent_coef, False


class Temperatures:
    """A temperature for discrete heads and one for continuous ones, or one for every head.

    The target entropy of a discrete head is a fraction of the largest there is, the logarithm of
    how many options may be chosen; that of a continuous head is minus one.

    Args:
        learning_rate: Of every member, (P, 1, 1, 1).
        alive: Which members have not diverged, (P, 1, 1, 1).
    """

    def __init__(
        self,
        config: SAC,
        layout: Layout,
        keys: Keys,
        learning_rate: Buffer,
        alive: Buffer,
    ) -> None:
        kinds = [0] * layout.num_discrete + [1] * layout.num_continuous
        groups = range(layout.num_heads) if config.per_head_temperature else kinds
        self.groups = tuple(group - min(groups) for group in groups)  # only Ranges: 0, not 1
        """The number of each head's temperature, from 0."""
        start, self._is_learned = begins_at(config.ent_coef)
        free = Free(max(self.groups) + 1, math.log(start))
        self.store = Store(keys, [free])
        self.optimizer = Adam(self.store, learning_rate, alive=alive)
        assert free.buffer is not None
        self.log_alpha = free.buffer
        """Their logarithms, (P, 1, 1, temperatures)."""
        self._surplus = free.buffer.gradient_buffer  # what the optimizer reads as their gradient
        self._scratch = Scratch(keys.num_members, layout.device)
        heads = layout.num_heads
        self.alpha = self._scratch("alpha", 1, heads, gradient=False)
        """The temperature of each head, (P, 1, 1, H)."""
        self.entropy = self._scratch("entropy", 1, heads, gradient=False)
        """The mean of each head's entropy, (P, 1, 1, H)."""
        self.aim = self._scratch("aim", 1, heads, gradient=False)
        """What that should be, (P, 1, 1, H)."""
        self._table = layout.table(layout.side_by_side() + [(0, 0)] * layout.num_continuous)
        fraction = config.member_values("target_entropy", keys)
        self._start = settings(keys, fraction, "target_entropy")  # stays
        self._fraction = settings(keys, fraction, "target_entropy")  # goes from there to `_end`
        self._end: Buffer | None = None
        if config.target_entropy_end is not None:
            end = config.member_values("target_entropy_end", keys)
            self._end = settings(keys, end, "target_entropy_end")
        self.span = 0.0
        """Updates over which the target entropy becomes what it is in the end."""

    def now(self, clock: Buffer) -> Buffer:
        """The temperatures of all heads, (P, 1, 1, H); the target moves by the clock of updates."""
        ops.temperatures(self.log_alpha, groups=self.groups, out=self.alpha)
        if self._end is not None:
            ops.linear(clock, self._start, self._end, span=self.span, out=self._fraction)
        return self.alpha

    def target(self, mask: Buffer | None) -> Buffer:
        """The entropy that each head should have, (P, 1, 1 or B, H), given what may be chosen."""
        rows = 1 if mask is None else mask.num_rows
        target = self._scratch("target", rows, len(self.groups), gradient=False)
        ops.target_entropy(self._fraction, mask, table=self._table, out=target)
        return target

    def step(self, entropy: Buffer, use: Buffer | None, mask: Buffer | None) -> None:
        """Raises temperatures where entropy (P, 1, B, H) is below target, lowers them elsewhere.

        loss = log alpha (mean entropy - mean target), whose gradient by log alpha is the surplus of
        entropy itself. A head has as much less to reach as it is less likely to be in use,
        (P, 1, B, H). Fixed temperatures stay.
        """
        out = [self._surplus, self.entropy, self.aim]
        ops.entropy_surplus(entropy, self.target(mask), use, groups=self.groups, out=out)
        if self._is_learned:
            self.optimizer.step()

    def metrics(self) -> Metrics:
        """Temperatures by now, and entropies at the last update."""
        logs, surplus = (x.tensor.flatten(1) for x in (self.log_alpha, self._surplus))
        alpha = logs.exp().index_select(-1, indices(self.groups, logs))
        return {
            "train/ent_coef_loss": (logs * surplus).sum(-1),
            "train/ent_coef": alpha.mean(-1),
            "heads/alpha": alpha,
            "heads/entropy": self.entropy.tensor.flatten(1).clone(),
            "heads/target_entropy": self.aim.tensor.flatten(1).clone(),
            "warn/temperature": (alpha > RUNAWAY).any(-1).float(),
        }
