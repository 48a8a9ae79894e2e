"""The DQN learner. Read `gradient_step`; `algorithms/__init__.py` says how to read a step.

With max-centered advantages the value of the greedy action is V for every factorization that shares
it, so factorizations differ only in what is regressed on the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor

from headwise import ops
from headwise.algorithms.dqn.exploration import EpsilonGreedy
from headwise.algorithms.learner import put_mask
from headwise.algorithms.off_policy import OffPolicyLearner
from headwise.errors import ConfigError
from headwise.factorizations.base import Factorization, factorizations, offers
from headwise.heads.action_value import ClosedFormValue
from headwise.nets.encoders import with_encoder
from headwise.ops import Buffer
from headwise.ops.values import LOSS
from headwise.population.store import Adam, Store

if TYPE_CHECKING:
    from headwise.algorithms.base import Metrics, Task
    from headwise.algorithms.dqn import DQN


class DQNLearner(OffPolicyLearner):
    """A population of DQN learners."""

    counts_updates = False

    def __init__(self, config: DQN, task: Task) -> None:
        kind, keys = task.factorization, task.keys
        if task.spec.num_ranges:
            raise ConfigError(
                "dqn needs discrete heads, and some are continuous (Range)",
                got=str(task.spec),
                fix="Cut them into bins: bins=11.",
            )
        super().__init__(config, task)
        _check(config, kind)
        if config.temperature and self.layout.links is not None:
            raise ConfigError(
                f"soft values of {kind.name!r} do not obey constraints exactly",
                got=f"temperature {config.temperature}",
                allowed="temperature 0, or factorization 'joint'",
            )
        self.config = config
        self.encoder, self.encoder_target = (
            self.make_encoder(0, shift=config.random_shift) for _ in range(2)
        )
        """What reads observations for them, if anything has to."""
        blueprint = self.blueprint(
            config.batch_size, net_arch=config.net_arch, activation=config.activation,
            branch_width=config.branch_width,
        )  # fmt: skip
        make = kind.value if config.dueling else kind.plain_value
        self.q_net, self.q_target = make(blueprint), make(blueprint)
        """The network that learns, and the target network that follows it: Q(s, a) of any kind."""
        self.store = Store(keys, with_encoder(self.q_net.parts, self.encoder))
        self.target_store = Store(keys, with_encoder(self.q_target.parts, self.encoder_target))
        self.optimizer = Adam(
            self.store, self.setting("learning_rate"), max_norm=config.max_grad_norm
        )
        self.optimizers = {"": self.optimizer}
        start = config.member_values("exploration_initial_eps", keys)
        end = config.member_values("exploration_final_eps", keys)
        self.exploration = EpsilonGreedy(self.layout, keys, self.num_envs, start, end)
        self._set_spans(task.total_steps)
        self.alpha = self._scratch("alpha", 1, self.layout.num_heads)
        self.alpha.tensor.fill_(config.temperature)
        self.loss = self._scratch("loss", 1, 3)
        self.loss.gradient[..., LOSS] = 1.0  # dL/dL; the other columns are reported only
        self._allocate(masked=False)

    def _allocate(self, *, masked: bool) -> None:
        """Makes room for batches with or without masks, and records anew."""
        super()._allocate(masked=masked)
        layout, rows = self.layout, self.config.batch_size
        self.target = self._scratch("target", rows, self.q_net.num_values)
        self._even_weights = self._scratch("weights", rows, self.q_net.num_values, gradient=False)
        self._even_weights.tensor.fill_(self._scale / (rows * self.q_net.num_values))
        self._next = self._scratch("next action", rows, layout.num_heads, gradient=False)
        self._best = self._scratch("best", self.num_envs, layout.num_heads, gradient=False)
        self._heads_mask = None
        if masked:
            options = self.exploration.heads.mask_width
            self._heads_mask = self._scratch("heads mask", self.num_envs, options, gradient=False)
        self._record()

    def _set_spans(self, total_steps: int) -> None:
        self.exploration.span = self.config.exploration_fraction * total_steps / self.num_envs

    def _record(self) -> None:
        super()._record()
        self._record_acting(self.exploration.action, self.exploration.heads)

    @property
    def _scale(self) -> float:
        """What a mean over rows and columns of errors is multiplied with.

        Each error counts scale / (B G). That is 1 / B where there is one value for all heads (vdn),
        1 / (B H) where heads share a network (shared), and 1 / B where each is a learner of its own
        (independent): then their losses add up, as if each were trained alone.
        """
        return float(self.q_net.num_values) if self.q_net.independent else 1.0

    # --- acting ---------------------------------------------------------------------------------

    def _draw(self) -> None:
        """The greedy action, but each head of each copy by chance something else."""
        self._greedy()
        self.exploration.choose(self._best, self.acts, self._heads_mask)

    def _greedy(self) -> None:
        x = self._seen(self.encoder, self.obs, "act")
        self.q_net.greedy(x, self._best, self.mask)

    def _chosen(self, *, greedy: bool) -> Tensor:
        if greedy:
            return self.layout.from_learner(self._best.tensor[:, 0])
        return self.exploration.heads.from_learner(self.exploration.action.tensor[:, 0])

    def _see(self, obs: Tensor, legal: Tensor | None) -> None:
        super()._see(obs, legal)
        if self._heads_mask is not None:
            put_mask(self._heads_mask, self.exploration.heads.mask(legal))

    # --- learning -------------------------------------------------------------------------------

    def gradient_step(self) -> None:
        """Targets by the target network, their error, and a step of Adam."""
        batch, huber = self.batch, self.config.loss == "huber"
        self._draw_shifts()

        # y = r + discount Q_target(s', argmax_a Q(s', a)), or the soft value at a temperature
        reward, next_value = self._reward_and_next_value()
        ops.td_target(reward, batch.discount, next_value, None, None, out=self.target)

        # loss = E[huber(Q(s, a) - y)], or of the square
        x = self._seen(self.encoder, batch.obs, "x", learns=True)
        q = self.q_net.predict(x, batch.action, batch.mask)  # (P, 1, B, G)
        error_inputs = q, self.target, self._row_weights()
        ops.value_error(*error_inputs, coef=1.0, huber=huber, out=self.loss)
        ops.value_error.backward(*error_inputs, coef=1.0, huber=huber, out=self.loss)
        self.q_net.backward(x, batch.action, batch.mask)
        if self.encoder is not None:
            self.encoder.backward(x)
        self.optimizer.step(self.target_store, self.config.tau)  # target += tau (online - target)
        if self.counts_updates:
            ops.advance(self.updates)

    def _reward_and_next_value(self) -> tuple[Buffer, Buffer]:
        """Rewards (P, 1, B, 1 or G) and values of the next states: together the target."""
        config, batch = self.config, self.batch
        mask = batch.next_mask
        target = self.q_target
        x = self._seen(self.encoder_target, batch.next_obs, "next")
        if config.temperature:
            soft = cast("ClosedFormValue", target).soft(x, self._next, self.alpha, None, mask)
            return self._munchausen_reward() if config.munchausen else batch.reward, soft.value
        if config.double_q:
            online = self._seen(self.encoder, batch.next_obs, "online")
            self.q_net.greedy(online, self._next, mask)
            return batch.reward, target.predict(x, self._next, mask)
        return batch.reward, target.greedy_value(x, mask)

    def _munchausen_reward(self) -> Buffer:
        """Rewards + weight clip(sum_h temperature log pi(a_h | s), floor, 0), for actions taken."""
        config, batch = self.config, self.batch
        value = cast("ClosedFormValue", self.q_target)
        x = self._seen(self.encoder_target, batch.obs, "before")
        log_policy = value.log_policy(x, batch.action, self.alpha, batch.mask)
        reward = self._scratch("reward", config.batch_size, value.num_values)
        settings = {"weight": config.munchausen, "floor": config.munchausen_floor}
        given = batch.reward, log_policy, self._use()
        ops.munchausen(*given, **settings, adds_up=value.num_values == 1, out=reward)
        return reward

    def _row_weights(self) -> Buffer:
        """What each error counts, (P, 1, B, G): a mean over the rows where heads are in use."""
        use = self._use()
        if use is not None and self.q_net.num_values == self.layout.num_heads:
            independent = self.q_net.independent
            ops.shares_in_use(use, scale=1.0, by_head=independent, out=self._even_weights)
        return self._even_weights

    def metrics(self) -> Metrics:
        """What the last update reports, (P,) each; errors count there as they do in the loss."""
        loss, error, value = self.loss.tensor.flatten(1).clone().unbind(-1)
        return {
            "train/loss": loss,
            "train/td_error": error / self._scale,
            "train/q_values": value / self._scale,
            "train/grad_norm": self.optimizer.norm.tensor.flatten().clone(),
            "rollout/exploration_rate": self.exploration.epsilon(self.acts),
            **self._followed(),
        }


def _check(config: DQN, kind: Factorization) -> None:
    """Refuses settings that a factorization has no values for."""
    if config.temperature and getattr(kind, "center", "max") != "max":
        raise ConfigError(
            "soft values are those of max-centered advantages",
            got=f"temperature {config.temperature}, center={getattr(kind, 'center', None)!r}",
            allowed="temperature 0, or center='max'",
        )
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
