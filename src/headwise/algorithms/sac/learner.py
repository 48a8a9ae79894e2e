"""The SAC learner. Read `gradient_step`: it is the paper, in order.

The factorization says which heads an actor draws and which ones the critics choose, by a softmax of
options' values. Each of the twins is valued under its own softmax, of which the smaller
counts, and actions follow the first. So targets are a little higher than those of a discrete
SAC, whose twins are valued under one policy. With n-step returns the entropies of the steps between
are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from headwise import ops
from headwise.algorithms.off_policy import OffPolicyLearner
from headwise.algorithms.sac.improvement import Counterfactual, Pathwise, StraightThrough
from headwise.algorithms.sac.sampler import ActionSampler
from headwise.algorithms.sac.temperature import Temperatures
from headwise.factorizations.action_critic import ActionCritic
from headwise.heads.action_value import Actor
from headwise.nets.encoders import with_encoder
from headwise.ops import Buffer, Queries
from headwise.population.keys import Stream
from headwise.population.store import Adam, Store

if TYPE_CHECKING:
    from headwise.algorithms.base import Metrics, Task
    from headwise.algorithms.sac import SAC

_FIRST_OF_CRITICS = 1000
"""The number of their first layer, which an actor's never reach: nothing begins like another."""


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
            table = layout.table([(0, 0)] * layout.num_heads)
            self._queries = Queries(table, config.batch_size)
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
        self.store = Store(keys, parts, _FIRST_OF_CRITICS)
        parts = with_encoder(self.critic_target.parts, self.encoder_target)
        self.target_store = Store(keys, parts, _FIRST_OF_CRITICS)
        learning_rate, max_norm = self.setting("learning_rate"), config.max_grad_norm
        self.optimizers = {"critic": Adam(self.store, learning_rate, max_norm=max_norm)}
        alive = self.optimizers["critic"].alive  # a member diverges in everything at once
        self.actor: Actor | None = None
        if self._first < layout.num_heads:
            self.actor = kind.actor(blueprint)
            scaled = self.setting("learning_rate", config.actor_lr_scale)
            own = None if self._shares else self.actor_encoder
            parts = with_encoder(self.actor.parts, own)
            self.optimizers["actor"] = Adam(
                Store(keys, parts), scaled, max_norm=max_norm, alive=alive
            )
        self.temperatures = Temperatures(config, layout, keys, learning_rate, alive)
        self._set_spans(task.total_steps)
        self.optimizers["alpha"] = self.temperatures.optimizer
        self.critic_loss = self._scratch("critic loss", 1, 3, copies=2)
        self.critic_loss.gradient[..., 0] = 1.0
        self.q_values = self._scratch("q", 1, self.critic.num_values, copies=2, gradient=False)
        self.softness = self._scratch("softness", 1, gradient=False)
        self._allocate(masked=layout.always_masks)

    def _allocate(self, *, masked: bool) -> None:
        """Makes room for batches with or without masks, and records anew."""
        super()._allocate(masked=masked)
        layout, rows, count = self.layout, self.config.batch_size, self.critic.num_values
        self.target, self._share = (
            self._scratch(name, rows, count, gradient=False) for name in ("target", "share")
        )
        self._share.tensor.fill_(1.0 / rows)

        def sampler(rows: int, extra: int = 0) -> ActionSampler:
            return ActionSampler(
                layout, self.keys.num_members, rows, self.actor, self._first,
                independent=self.critic.independent, extra=extra,
            )  # fmt: skip

        relaxed = layout.num_discrete * max(layout.sizes) if self._relaxes else 0
        self._next, self._now = sampler(rows), sampler(rows, relaxed)
        """Actions of the policy in a batch's next states, and in its states."""
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
            return Counterfactual(self.critic, self._now, self.layout, self._queries)
        if isinstance(self.critic, ActionCritic) and self._relaxes:
            return StraightThrough(self.critic, self._now, self.layout, self.softness)
        return Pathwise(self.critic, self._now)

    # --- acting ---------------------------------------------------------------------------------

    def _draw(self) -> None:
        sampler, alpha = self._act_sampler, self.temperatures.now(self.updates)
        seen, x = self._both_see(self.obs, "act")
        sampler.sample(seen, self.mask)
        self.critic.draw(x, sampler.action, alpha, sampler.uniform, self.mask)

    def _greedy(self) -> None:
        seen, x = self._both_see(self.obs, "act")
        self._act_sampler.mode(seen, self.mask)
        self.critic.greedy(x, self._act_sampler.action, self.mask)

    @property
    def _shares(self) -> bool:
        """Whether actor and critics see the same of an observation."""
        return self.actor_encoder is self.encoder

    def _both_see(self, obs: Buffer, name: str) -> tuple[Buffer, Buffer]:
        """What the actor sees of observations, and critics where they choose anything."""
        seen = self._seen(self.actor_encoder, obs, name)
        if self._shares or not self._first:
            return seen, seen
        return seen, self._seen(self.encoder, obs, name)

    def _chosen(self, *, greedy: bool) -> Tensor:
        return self.layout.from_learner(self._act_sampler.action.tensor[:, 0])

    # --- learning -------------------------------------------------------------------------------

    def gradient_step(self) -> None:
        """Twin critics on a soft target, then the actor, then the temperatures."""
        batch, next_actions, actions = self.batch, self._next, self._now
        alpha = self.temperatures.now(self.updates)

        self._draw_shifts()
        ops.uniform(next_actions.noise, self.seeds, self.updates, Stream.TARGET)
        x = self._seen(self.encoder_target, batch.next_obs, "next")
        seen = x if self.actor is None else self._seen(self.actor_encoder, batch.next_obs, "drawn")
        soft = next_actions.soft(self.critic_target, seen, x, alpha, batch.next_mask)
        value = soft.value, next_actions.bonus, self._expected_bonus(alpha)
        ops.td_target(batch.reward, batch.discount, *value, out=self.target)

        x = self._seen(self.encoder, batch.obs, "x", learns=True)
        q = self.critic.predict(x, batch.action, batch.mask)
        ops.row_mean(q, out=self.q_values)
        error = q, self.target, self._weigh()
        ops.value_error(*error, coef=1.0, huber=False, out=self.critic_loss)
        ops.value_error.backward(*error, coef=1.0, huber=False, out=self.critic_loss)
        self.critic.backward(x, batch.action, batch.mask)
        if self.encoder is not None:
            self.encoder.backward(x)
        self.optimizers["critic"].step(self.target_store, self.config.tau)

        ops.uniform(actions.noise, self.seeds, self.updates, Stream.ACTOR)
        self._relax()
        seen, x = self._for_improvement(x)
        soft = self.improvement.gradient(seen, x, batch.mask, alpha)
        if self.actor_encoder is not None and not self._shares:
            self.actor_encoder.backward(seen)
        if self.actor is not None:
            self.optimizers["actor"].step()

        mask = self._legal(actions.action, batch.mask)
        self.temperatures.step(actions.entropies(soft), actions.use(soft), mask)
        ops.advance(self.updates)

    def _for_improvement(self, x: Buffer) -> tuple[Buffer, Buffer]:
        """What the actor sees of the batch, and critics as a constant, for what they have seen.

        A shared encoder is that of the critics: what it shows the actor is a constant too.
        """
        if self.encoder is None:
            return x, x
        held = self._scratch("held", x.num_rows, x.width, gradient=False)
        ops.copy(x, out=held)
        if self._shares:
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
        mask = self._legal(self._next.action, self.batch.next_mask)
        target = self.temperatures.target(mask)
        use = None if self.critic.independent else self._mean_use()
        rows = target.num_rows
        expected = self._scratch("expected", rows, self.critic.num_values, gradient=False)
        ops.entropy_bonus(target, alpha, use, adds_up=not self.critic.independent, out=expected)
        return expected

    def _legal(self, action: Buffer, mask: Buffer | None) -> Buffer | None:
        """Which options heads had when an action was drawn: entropy has to reach no further."""
        links = self.layout.links
        if links is None:
            return mask
        legal = self._scratch("legal", action.num_rows, self.layout.total, gradient=False)
        ops.legal_options(action, mask, links=links, out=legal)
        return legal

    def _mean_use(self) -> Buffer | None:
        use = self._use()
        if use is None:
            return None
        mean = self._scratch("mean use", 1, self.layout.num_heads, gradient=False)
        ops.row_mean(use, out=mean)
        return mean

    def _weigh(self) -> Buffer:
        """What each error counts, (P, 1, B, G): a head not in use has nothing to learn."""
        use = self._use() if self.critic.independent else None
        if use is None:
            return self._share
        weights = self._scratch("weights", *self.target.tensor.shape[-2:], gradient=False)
        ops.multiply(use, self._share, out=weights)
        return weights

    def _relax(self) -> None:
        """How soft relaxed options are by now."""
        if self._relaxes:
            start, decay, floor = (
                getattr(self.config, f"gumbel_{name}") for name in ("start", "decay", "floor")
            )
            ops.decaying(self.updates, start=start, decay=decay, floor=floor, out=self.softness)

    def metrics(self) -> Metrics:
        """What the last update reports: (P,) for a member, (P, H) for its heads."""
        metrics = {
            "train/critic_loss": self.critic_loss.tensor[..., 0].sum((-2, -1)),
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
