"""The SAC learner. Read `gradient_step`: it is the paper, in order.

The factorization says which heads an actor draws and which ones the critics choose, by a softmax of
what options are worth. Each of the twins is valued under its own softmax, of which the smaller
counts, and actions follow the first. So targets are a little more hopeful than those of a discrete
SAC, whose twins are valued under one policy. With n-step returns the entropies of the steps between
are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from headwise import ops
from headwise.algorithms.learner import Learner
from headwise.algorithms.sac.drawn import Drawn
from headwise.algorithms.sac.improvement import Counterfactual, Pathwise, StraightThrough
from headwise.algorithms.sac.temperature import Temperatures, state_of
from headwise.algorithms.transitions import Transitions
from headwise.factorizations.action_critic import ActionCritic
from headwise.factorizations.base import check_offers
from headwise.heads.action_value import Actor, Soft
from headwise.heads.blueprint import Blueprint
from headwise.heads.layout import Layout
from headwise.ops import Buffer, HeadTable, Queries, Recorded, Scratch
from headwise.ops.threads import member_threads
from headwise.population.keys import Stream
from headwise.population.store import Adam, Store, seeds_of, settings

if TYPE_CHECKING:
    from headwise.algorithms.base import LazyMetrics, Metrics, ReplayBatch, Task
    from headwise.algorithms.sac import SAC

_FIRST_OF_CRITICS = 1000
"""The number of their first layer, which an actor's never reach: nothing begins like another."""


class SACLearner(Learner):
    """A population of SAC learners."""

    noise: Buffer
    updates: Buffer

    def __init__(self, config: SAC, task: Task) -> None:
        self.config, self.keys = config, task.keys
        kind, keys, device = task.factorization, task.keys, task.device
        kind.check(task.spec)
        for what in config.needs:
            check_offers(kind, what, config.name)
        self.layout = layout = Layout(task.spec, device, joint=kind.is_joint)
        self.features, self.num_envs, self.extra = task.obs_size, task.num_slots, {}
        self.plan, rows = config.replay_plan(), config.batch_size
        self._first = 0 if kind.chooses == "none" else layout.num_discrete
        counterfactual = config.actor_gradient == "counterfactual"
        self._queries: Queries | None = None
        if counterfactual and self._first < layout.num_discrete:
            self._queries = Queries(layout.table([(0, 0)] * layout.num_heads), rows)
        plan = Blueprint(
            layout=layout,
            members=keys.num_members,
            features=task.obs_size,
            rows=max(rows, task.num_slots),
            device=device,
            hidden=config.hidden,
            activation=config.activation,
            branch_width=config.branch_width,
            state_std=True,
            log_std=(-5.0, 1.0),
            policy_gain=config.policy_gain,
        )
        asked = 0 if self._queries is None else self._queries.count
        self.critic, self.slow = (
            kind.twins(replace(plan, rows=max(plan.rows, asked))) for _ in "ab"
        )
        """The twin critics, and the target networks that follow them."""
        self.store, self.slow_store = (
            Store(keys, critic.parts, _FIRST_OF_CRITICS) for critic in (self.critic, self.slow)
        )
        lr = config.member_values("lr", keys)
        rate, slower = (settings(keys, x, "lr") for x in (lr, lr * config.actor_lr_scale))
        self.optimizers = {"critic": Adam(self.store, rate, max_norm=config.max_grad_norm)}
        alive = self.optimizers["critic"].alive  # a member diverges in everything at once
        self.actor: Actor | None = None
        if self._first < layout.num_heads:
            self.actor = kind.actor(plan)
            self.optimizers["actor"] = Adam(
                Store(keys, self.actor.parts), slower, max_norm=config.max_grad_norm,
                alive=alive,
            )  # fmt: skip
        num_updates = max(task.total_steps * config.updates_per_step, 1.0)
        self.temperatures = Temperatures(config, layout, keys, rate, alive, num_updates)
        self.optimizers["alpha"] = self.temperatures.optimizer
        self.seeds = seeds_of(keys)
        self._scratch = Scratch(keys.num_members, device)
        self.acts, self.updates = self._scratch("acts", 1, 2), self._scratch("updates", 1, 2)
        """Clocks: how often the learner has acted, and learned."""
        self.critic_loss = self._scratch("critic loss", 1, 3, copies=2)
        self.critic_loss.gradient[..., 0] = 1.0
        self.q_values = self._scratch("q", 1, self.critic.num_values, copies=2, gradient=False)
        self.softness = self._scratch("softness", 1, gradient=False)
        self._relaxes = self._first < layout.num_discrete and not counterfactual
        self._conditions: HeadTable | None = None
        if layout.is_conditional:
            self._conditions = layout.table([(0, 0)] * layout.num_heads)
        self._allocate(masked=layout.always_masks)

    def _allocate(self, *, masked: bool) -> None:
        """Makes room for batches with or without masks, and records anew."""
        self.masked, layout, rows = masked, self.layout, self.config.batch_size
        members = self.keys.num_members
        self.batch = Transitions(layout, members, rows, self.features, masked=masked)
        count = self.critic.num_values
        self.target, self._share = (
            self._scratch(name, rows, count, gradient=False) for name in ("target", "share")
        )
        self._share.tensor.fill_(1.0 / rows)

        def drawn(rows: int, extra: int = 0) -> Drawn:
            return Drawn(
                layout, members, rows, self.actor, self._first, independent=self.critic.independent,
                extra=extra,
            )  # fmt: skip

        relaxed = layout.num_discrete * max(layout.sizes) if self._relaxes else 0
        self._next, self._now, self._acts = drawn(rows), drawn(rows, relaxed), drawn(self.num_envs)
        self.improvement = self._improvement()
        self.noise = self._acts.noise
        self.obs = self._scratch("obs", self.num_envs, self.features, gradient=False)
        self.mask = None
        if masked:
            self.mask = self._scratch("mask", self.num_envs, layout.total, gradient=False)
        self._record_acting(self._acts.action)
        self._update = Recorded(self.gradient_step, layout.device)

    def _improvement(self) -> Pathwise:
        """How the actor learns."""
        if isinstance(self.critic, ActionCritic) and self._queries is not None:
            return Counterfactual(self.critic, self._now, self.layout, self._queries)
        if isinstance(self.critic, ActionCritic) and self._relaxes:
            return StraightThrough(self.critic, self._now, self.layout, self.softness)
        return Pathwise(self.critic, self._now)

    # --- acting ---------------------------------------------------------------------------------

    def _noise(self) -> None:
        ops.uniform(self.noise, self.seeds, self.acts, Stream.ACT)

    def _draw(self) -> None:
        drawn, alpha = self._acts, self.temperatures.now(self.updates)
        drawn.sample(self.obs, self.mask)
        self.critic.draw(self.obs, drawn.action, alpha, drawn.uniform, self.mask)

    def _greedy(self) -> None:
        self._acts.mode(self.obs, self.mask)
        self.critic.greedy(self.obs, self._acts.action, self.mask)

    def _chosen(self, *, greedy: bool) -> Tensor:
        return self.layout.from_learner(self._acts.action.tensor[:, 0])

    # --- learning -------------------------------------------------------------------------------

    def update(self, batch: ReplayBatch) -> LazyMetrics:
        """One gradient step of critics, actor and temperatures on rows drawn from the past."""
        self._make_room_for(batch.legal)
        self.batch.load(batch)
        self._update(1, member_threads())
        return self.metrics

    def gradient_step(self) -> None:
        """Twin critics on a soft target, then the actor, then the temperatures."""
        batch, following, now = self.batch, self._next, self._now
        alpha = self.temperatures.now(self.updates)

        ops.uniform(following.noise, self.seeds, self.updates, Stream.TARGET)
        soft = following.soft(self.slow, batch.next_obs, alpha, batch.next_mask)
        expected = self._expected_bonus(alpha, soft)
        value = soft.value, following.bonus, expected
        ops.td_target(batch.reward, batch.discount, *value, out=self.target)

        q = self.critic.predict(batch.obs, batch.action, batch.mask)
        ops.row_mean(q, out=self.q_values)
        error = q, self.target, self._weigh()
        ops.value_error(*error, coef=1.0, huber=False, out=self.critic_loss)
        ops.value_error.backward(*error, coef=1.0, huber=False, out=self.critic_loss)
        self.critic.backward(batch.obs, batch.action, batch.mask)
        self.optimizers["critic"].step(self.slow_store, self.config.tau)

        ops.uniform(now.noise, self.seeds, self.updates, Stream.ACTOR)
        self._relax()
        soft = self.improvement.gradient(batch.obs, batch.mask, alpha)
        if self.actor is not None:
            self.optimizers["actor"].step()

        self.temperatures.step(now.entropies(soft), now.use(soft), batch.mask)
        ops.advance(self.updates)

    def _expected_bonus(self, alpha: Buffer, soft: Soft) -> Buffer | None:
        """What entropy is worth where it meets its target, (P, 1, 1 or B, G): it is not paid.

        A head that is seldom in use adds as little, unless it is a learner of its own. How seldom
        is a mean over the actions of the batch, which stands for every next state: right on
        average, and only nearly so where use depends on the state.
        """
        if self.config.entropy_bonus == "whole":
            return None
        target = self.temperatures.target(self.batch.next_mask)
        use = None if self.critic.independent else self._old_use()
        rows = target.num_rows
        expected = self._scratch("expected", rows, self.critic.num_values, gradient=False)
        ops.entropy_bonus(target, alpha, use, adds_up=not self.critic.independent, out=expected)
        return expected

    def _old_use(self) -> Buffer | None:
        if self._conditions is None:
            return None
        use = self._scratch("use", self.config.batch_size, self.layout.num_heads, gradient=False)
        ops.in_use(self.batch.action, table=self._conditions, out=use)
        mean = self._scratch("mean use", 1, self.layout.num_heads, gradient=False)
        ops.row_mean(use, out=mean)
        return mean

    def _weigh(self) -> Buffer:
        """What each error counts, (P, 1, B, G): a head not in use has nothing to learn."""
        if self._conditions is None or not self.critic.independent:
            return self._share
        use = self._scratch("use", self.config.batch_size, self.layout.num_heads, gradient=False)
        ops.in_use(self.batch.action, table=self._conditions, out=use)
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
        found = {
            "train/critic_loss": self.critic_loss.tensor[..., 0].sum((-2, -1)),
            "train/q_values": self.q_values.tensor.mean((-3, -2, -1)),
            "train/grad_norm": self.optimizers["critic"].norm.tensor.flatten().clone(),
        }
        if self.actor is not None:
            found["train/actor_loss"] = self.improvement.loss.tensor.flatten().clone()
        of_heads = self.temperatures.metrics()
        return found | {
            name: self.layout.heads_in_order(x) if name.startswith("heads/") else x
            for name, x in of_heads.items()
        }

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that later updates depend on, each with the member axis first."""
        return state_of(self.optimizers) | {"target": self.slow_store.rows()} | self._clocks()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        for name, optimizer in self.optimizers.items():
            start = f"{name}."
            part = {n.removeprefix(start): x for n, x in state.items() if n.startswith(start)}
            optimizer.load_state_dict(part)
        self.slow_store.load_rows(state["target"])
        self._set_clocks(state)
