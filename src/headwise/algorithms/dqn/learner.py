"""The DQN learner. Read `gradient_step`: it is the paper, in order, forward and then backward.

With max-centered advantages the value of the greedy action is V for every factorization that shares
it, so factorizations differ only in what is regressed on the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor

from headwise import ops
from headwise.algorithms.dqn.exploration import EpsilonGreedy
from headwise.algorithms.learner import Learner
from headwise.algorithms.transitions import Transitions, put_mask
from headwise.errors import ConfigError
from headwise.factorizations.base import Factorization, check_offers, factorizations, offers
from headwise.heads.action_value import ClosedFormValue
from headwise.heads.blueprint import Blueprint
from headwise.heads.layout import Layout
from headwise.ops import Buffer, HeadTable, Recorded, Scratch
from headwise.ops.threads import member_threads
from headwise.population.store import Adam, Store, settings

if TYPE_CHECKING:
    from headwise.algorithms.base import LazyMetrics, Metrics, ReplayBatch, Task
    from headwise.algorithms.dqn import DQN


class DQNLearner(Learner):
    """A population of DQN learners."""

    def __init__(self, config: DQN, task: Task) -> None:
        self.config, self.keys = config, task.keys
        kind, keys, device = task.factorization, task.keys, task.device
        _check(config, kind, task)
        self.layout = Layout(task.spec, device, joint=kind.is_joint)
        self.features, self.num_envs, self.extra = task.obs_size, task.num_slots, {}
        self.noise = None  # there is no policy to draw from, only the greedy action
        self.plan = config.replay_plan()
        plan = Blueprint(
            layout=self.layout,
            members=keys.num_members,
            features=task.obs_size,
            rows=max(config.batch_size, task.num_slots),
            device=device,
            hidden=config.hidden,
            activation=config.activation,
            branch_width=config.branch_width,
        )
        make = kind.value if config.dueling else kind.plain_value
        self.value, self.slow = make(plan), make(plan)
        """What learns, and the target network that follows it."""
        self.store, self.slow_store = Store(keys, self.value.parts), Store(keys, self.slow.parts)
        lr = settings(keys, config.member_values("lr", keys), "lr")
        self.optimizer = Adam(self.store, lr, max_norm=config.max_grad_norm)
        self.optimizers = {"": self.optimizer}
        self._scratch = Scratch(keys.num_members, device)
        self.acts = self._scratch("acts", 1, 2)
        """A clock: how often the learner has acted."""
        start, end = (config.member_values(n, keys) for n in ("epsilon_start", "epsilon"))
        span = config.epsilon_share * task.total_steps / task.num_slots
        self.exploration = EpsilonGreedy(self.layout, keys, self.num_envs, start, end, span)
        self.alpha = self._scratch("alpha", 1, self.layout.num_heads)
        self.alpha.tensor.fill_(config.temperature)
        self.loss = self._scratch("loss", 1, 3)
        self.loss.gradient[..., 0] = 1.0
        self._conditions: HeadTable | None = None
        if self.layout.is_conditional:
            self._conditions = self.layout.table(self.layout.side_by_side())
        self._allocate(masked=False)

    def _allocate(self, *, masked: bool) -> None:
        """Makes room for batches with or without masks, and records anew."""
        self.masked, layout, rows = masked, self.layout, self.config.batch_size
        masks = masked or layout.always_masks
        self.batch = Transitions(layout, self.keys.num_members, rows, self.features, masked=masks)
        self.target = self._scratch("target", rows, self.value.num_values)
        self._weights = self._scratch("weights", rows, self.value.num_values, gradient=False)
        self._weights.tensor.fill_(self._scale / (rows * self.value.num_values))
        self._next = self._scratch("next action", rows, layout.num_heads, gradient=False)
        self.obs = self._scratch("obs", self.num_envs, self.features, gradient=False)
        self._best = self._scratch("best", self.num_envs, layout.num_heads, gradient=False)
        self.mask = self._heads_mask = None
        if masks:
            self.mask = self._scratch("mask", self.num_envs, layout.total, gradient=False)
        if masked:
            options = self.exploration.heads.total
            self._heads_mask = self._scratch("heads mask", self.num_envs, options, gradient=False)
        self._record_acting(self.exploration.action, self.exploration.heads)
        self._update = Recorded(self.gradient_step, layout.device)

    @property
    def _scale(self) -> float:
        """What a mean of errors is multiplied with: heads that are learners of their own add up."""
        return float(self.value.num_values) if self.value.independent else 1.0

    # --- acting ---------------------------------------------------------------------------------

    def _noise(self) -> None:
        """There is none but that of exploration."""

    def _draw(self) -> None:
        """The greedy action, but each head of each copy by chance something else."""
        self._greedy()
        self.exploration.choose(self._best, self.acts, self._heads_mask)

    def _greedy(self) -> None:
        self.value.greedy(self.obs, self._best, self.mask)

    def _chosen(self, *, greedy: bool) -> Tensor:
        if greedy:
            return self.layout.from_learner(self._best.tensor[:, 0])
        return self.exploration.heads.from_learner(self.exploration.action.tensor[:, 0])

    def _see(self, obs: Tensor, legal: Tensor | None) -> None:
        super()._see(obs, legal)
        if self._heads_mask is not None:
            put_mask(self._heads_mask, self.exploration.heads.mask(legal))

    # --- learning -------------------------------------------------------------------------------

    def update(self, batch: ReplayBatch) -> LazyMetrics:
        """One gradient step on rows drawn from the past."""
        self._make_room_for(batch.legal)
        self.batch.load(batch)
        self._update(1, member_threads())
        return self.metrics

    def gradient_step(self) -> None:
        """Targets by the network that follows, the error, and a step of the one that learns."""
        batch, huber = self.batch, self.config.loss == "huber"
        reward, following = self._following()
        ops.td_target(reward, batch.discount, following, None, None, out=self.target)

        q = self.value.predict(batch.obs, batch.action, batch.mask)
        error = q, self.target, self._weigh()
        ops.value_error(*error, coef=1.0, huber=huber, out=self.loss)
        ops.value_error.backward(*error, coef=1.0, huber=huber, out=self.loss)
        self.value.backward(batch.obs, batch.action, batch.mask)
        self.optimizer.step(self.slow_store, self.config.tau)

    def _following(self) -> tuple[Buffer, Buffer]:
        """Rewards (P, 1, B, 1 or G), and the values that follow: together the target."""
        config, batch = self.config, self.batch
        given = batch.next_obs, self._next, self.alpha, None, batch.next_mask
        if config.temperature:
            following = cast("ClosedFormValue", self.slow).soft(*given).value
            return self._with_bonus() if config.munchausen else batch.reward, following
        if config.double_q:
            self.value.greedy(batch.next_obs, self._next, batch.next_mask)
            return batch.reward, self.slow.predict(batch.next_obs, self._next, batch.next_mask)
        return batch.reward, self.slow.greedy_value(batch.next_obs, batch.next_mask)

    def _with_bonus(self) -> Buffer:
        """Rewards and the scaled log-policy of the action taken: a bonus for being sure."""
        config, batch, value = self.config, self.batch, cast("ClosedFormValue", self.slow)
        sure = value.log_policy(batch.obs, batch.action, self.alpha, batch.mask)
        reward = self._scratch("reward", config.batch_size, value.num_values)
        settings = {"weight": config.munchausen, "floor": config.munchausen_floor}
        given = batch.reward, sure, self._use()
        ops.munchausen(*given, **settings, adds_up=value.num_values == 1, out=reward)
        return reward

    def _weigh(self) -> Buffer:
        """What each error counts, (P, 1, B, G): a mean over the rows where heads are in use."""
        use = self._use()
        if use is not None and self.value.num_values == self.layout.num_heads:
            independent = self.value.independent
            ops.shares_in_use(use, scale=1.0, by_head=independent, out=self._weights)
        return self._weights

    def _use(self) -> Buffer | None:
        """Which heads the actions taken use; None: all of them."""
        if self._conditions is None:
            return None
        use = self._scratch("use", self.config.batch_size, self.layout.num_heads, gradient=False)
        ops.in_use(self.batch.action, table=self._conditions, out=use)
        return use

    def metrics(self) -> Metrics:
        """What the last update reports, (P,) each; errors count there as they do in the loss."""
        loss, error, value = self.loss.tensor.flatten(1).clone().unbind(-1)
        return {
            "train/loss": loss,
            "train/td_error": error / self._scale,
            "train/q_values": value / self._scale,
            "train/grad_norm": self.optimizer.norm.tensor.flatten().clone(),
            "rollout/exploration_rate": self.exploration.epsilon(self.acts),
        }

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that later updates depend on, each with the member axis first."""
        return self.optimizer.state_dict() | {"target": self.slow_store.rows()} | self._clocks()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        self.optimizer.load_state_dict(state)
        self.slow_store.load_rows(state["target"])
        self._set_clocks(state)


def _check(config: DQN, kind: Factorization, task: Task) -> None:
    """Refuses actions and settings that DQN, or the factorization, has no values for."""
    if task.spec.num_ranges:
        raise ConfigError(
            "dqn chooses among options, and some heads are Ranges",
            got=str(task.spec),
            fix="Give a number of bins: bins=11.",
        )
    kind.check(task.spec)
    for what in config.needs:
        check_offers(kind, what, config.name)
    if config.temperature and not kind.soft_targets:
        able = [name for name, other in factorizations.items() if other.soft_targets]
        raise ConfigError(
            f"the factorization {kind.name!r} has no soft values",
            got=f"temperature {config.temperature}",
            allowed=f"temperature 0, or one of {', '.join(able)}",
        )
    if not config.dueling and not offers(type(kind), "plain_value"):
        able = [name for name, other in factorizations.items() if offers(other, "plain_value")]
        raise ConfigError(
            f"the factorization {kind.name!r} is made of a state's value and advantages",
            got="dueling=False",
            allowed=f"dueling=True, or one of {', '.join(able)}",
        )
