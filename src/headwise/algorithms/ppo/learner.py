"""The PPO learner. Read `gradient_step`; `algorithms/__init__.py` says how to read a step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headwise import ops
from headwise.algorithms.base import RolloutPlan
from headwise.algorithms.inspect import inspector_named
from headwise.algorithms.learner import Learner
from headwise.algorithms.ppo.advantages import Estimator
from headwise.algorithms.ppo.buffers import Drawn, Rows, Sight, Widths
from headwise.algorithms.ppo.diagnostics import HeadGradients, explained_variance
from headwise.algorithms.ppo.offline import OfflineRows
from headwise.algorithms.ppo.ratios import ratios_of
from headwise.errors import ConfigError
from headwise.factorizations.critics import BranchingCritic
from headwise.nets.encoders import with_encoder
from headwise.ops import Buffer, Evaluation, Recorded
from headwise.ops.policy_loss import DIVERGENCE, ENTROPY, LOSS, SURROGATE
from headwise.ops.threads import member_threads
from headwise.population.keys import Stream
from headwise.population.rows import rows_per_chunk
from headwise.population.store import Adam, Store, settings

if TYPE_CHECKING:
    from headwise.algorithms.base import LazyMetrics, Metrics, RolloutBatch, Task
    from headwise.algorithms.ppo import PPO


class PPOLearner(Learner):
    """A population of PPO learners."""

    noise: Buffer

    def __init__(self, config: PPO, task: Task) -> None:
        super().__init__(config, task)
        self.config, kind, keys = config, task.factorization, task.keys
        self.length = config.n_steps
        self.plan = RolloutPlan(self.length)
        self.num_rows = self.length * self.num_envs
        """Rows of a rollout (R)."""
        self.batch_size = min(config.batch_size, self.num_rows)
        self._chunk = rows_per_chunk(self.num_rows, task.device)
        encoder = self.make_encoder(0)
        critic_encoder = encoder if config.share_encoder else self.make_encoder(1)
        self.sight = Sight(encoder, critic_encoder, self._scratch)
        blueprint = self.blueprint(
            max(self.batch_size, self._chunk), net_arch=config.net_arch,
            activation=config.activation, kind=config.range_kind, policy_gain=config.policy_gain,
            mean_penalty=config.mean_penalty,
        )  # fmt: skip
        self.actor = kind.policy(blueprint)
        self.critic = kind.critic(
            replace(
                blueprint,
                net_arch=config.critic_net_arch or config.net_arch,
                activation=config.critic_activation,
                branch_width=config.branch_width,
                orthogonal=config.critic_orthogonal,
            )
        )
        self.branching = self.critic if isinstance(self.critic, BranchingCritic) else None
        """The critic, where it tells heads apart."""
        if self.branching is not None and config.clip_range_vf is not None:
            raise ConfigError(
                f"clip_range_vf holds the value of states near the old one, and the critic of "
                f"{kind.name!r} learns by the value of actions",
                got=f"clip_range_vf={config.clip_range_vf}",
                allowed="None",
                fix="Leave clip_range_vf out, or use a factorization without a branching critic.",
            )
        parts = [*self.actor.parts, *self.critic.parts]
        self.store = Store(keys, with_encoder(parts, *self.sight.encoders))
        self.optimizer = Adam(
            self.store, self.setting("learning_rate"), max_norm=config.max_grad_norm
        )
        self.optimizers = {"": self.optimizer}
        self.clip = self.setting("clip_range")
        self.ent_coef = self.setting("ent_coef")
        self.kl_coef = settings(keys, config.kl_coef, "kl_coef")
        self._zero = settings(keys, 0.0, "zero")  # a coefficient that leaves the surrogate alone
        self.ratios = ratios_of(config, self.layout, joint=kind.joint_ratio)
        """Which heads share a probability ratio. By default each head's is clipped by itself, where
        Stable-Baselines3 clips that of the whole action (`ratio="joint"`, the default of `ar`)."""
        importance = config.importance
        self.estimator = Estimator(
            config, self.layout, self.actor, self.critic, self.sight,
            kind.default_importance if importance == "auto" else importance, self.ratios,
            self.setting("gamma"), self.setting("gae_lambda"), self.num_envs,
        )  # fmt: skip
        self._set_spans(task.total_steps)
        self.offline = OfflineRows(config.offline_rows) if config.offline_rows else None
        self._inspect = None if config.inspect is None else inspector_named(config.inspect)
        self.noise = self._scratch("act", self.num_envs, self.actor.table.num_uniforms)
        self.loss, self.value_loss = self._scratch("loss", 1, 4), self._scratch("value loss", 1, 3)
        for x in (self.loss, self.value_loss):
            x.gradient[..., LOSS] = 1.0  # dL/dL; the other columns are reported only
        self.losses = self._scratch("losses", 1, 7)
        """Both, summed over the minibatches of the last epoch."""
        self.moved = self._scratch("moved", 1, 3 + 3 * self.layout.num_heads)
        """How far the policy moved (`ops.movement`), likewise."""
        self.explained = self._scratch("explained", 1)
        own = self.store.parameters.columns(0, sum(part.size for part in self.actor.parts))
        self.head_gradients = HeadGradients(own.gradient_buffer, self.ratios)
        self._allocate(masked=self.layout.always_masks)

    def _allocate(self, *, masked: bool) -> None:
        """Makes room for rollouts with or without masks, and records anew."""
        self.masked, device = masked, self.layout.device
        options = 0 if self.branching is None else self.branching.table.total
        self._widths = widths = Widths(
            self.config, self.layout, self.obs_size, self.critic, options, self.ratios,
            masked=masked,
        )  # fmt: skip

        def made(rows: int, columns: dict[str, int]) -> Rows:
            return Rows(self.keys.num_members, rows, columns, device)

        now = made(self.num_envs, widths.seen | widths.action)
        self.obs, self.mask = now["obs"], now.get("mask")
        self._last_drawn = Drawn(now["raw"], now["unit"], now["log_prob"])
        self.extra = {name: widths.action[name] for name in ("raw", "log_prob")}
        self.rollout = made(self.num_rows, widths.rollout)
        self.batch = made(self.batch_size, widths.learned)
        self._past = made(self.batch_size, widths.past if self.offline is not None else {})
        epochs = self.config.n_epochs
        self._shuffle_keys = self._scratch("shuffle", epochs, self.num_rows)
        self._order = self._scratch("order", 1, epochs * self.num_rows)
        self._cursor = self._scratch("cursor", 1)
        self._evaluations: dict[int, Evaluation] = {}
        self._record()

    def _set_spans(self, total_steps: int) -> None:
        num_updates = max(total_steps // self.num_rows, 1)
        self.estimator.span = max(self.config.anneal_share * num_updates, 1.0)

    def _record(self) -> None:
        self._record_acting(self._last_drawn.unit)
        self._begin, self._epoch, self._last_epoch = (
            Recorded(body, self.layout.device, records=self.offline is None)  # past rows grow
            for body in (self.begin, self.run_epoch, self.run_last_epoch)
        )

    # --- acting ---------------------------------------------------------------------------------

    def _draw(self) -> None:
        x = self.sight.policy(self.obs)
        self.actor.sample(x, self.noise, self.mask, self._last_drawn)

    def _greedy(self) -> None:
        x = self.sight.policy(self.obs)
        self.actor.mode(x, self.mask, [self._last_drawn.raw, self._last_drawn.unit])

    def _chosen(self, *, greedy: bool) -> Tensor:
        return self.layout.from_learner(self._last_drawn.unit.tensor[:, 0])

    def _kept(self) -> dict[str, Buffer]:
        return {"raw": self._last_drawn.raw, "log_prob": self._last_drawn.log_prob}

    # --- learning -------------------------------------------------------------------------------

    def update(self, batch: RolloutBatch) -> LazyMetrics:
        """Several passes over a rollout in shuffled minibatches."""
        self.load(batch)
        self._begin()
        if self.offline is not None:
            draws = self.keys.at(int(self.updates.longs.max()) - 1)
            self.offline.add(self.rollout, draws, self.config.n_epochs)
        threads = member_threads()
        self._epoch(times=self.config.n_epochs - 1, threads=threads)
        self._last_epoch(times=1, threads=threads)
        return self.metrics

    def load(self, batch: RolloutBatch) -> None:
        """Takes in what happened, tensors (P, T, E, ...)."""
        self._make_room_for(batch.legal)
        mask, next_mask = self.layout.mask(batch.legal), self.layout.mask(batch.next_legal)
        rows = self.rollout
        for name in ("obs", "next_obs"):
            rows.write(name, self.vector(getattr(batch, name)))
        for name in ("reward", "terminated", "truncated", "valid"):
            rows.write(name, getattr(batch, name).unsqueeze(-1))
        rows.write("unit", self.layout.to_learner(batch.action))
        for name in ("raw", "log_prob"):
            rows.write(name, batch.extra[name])
        if self.masked:
            rows.write("mask", mask)
            rows.write("next_mask", next_mask)

    def begin(self) -> None:
        """Advantages and targets of the rollout, and the order of its rows in every pass."""
        rows = self.rollout
        self.estimator.run(rows, self.updates, self._chunk)
        explained_variance(rows["value"], rows["target"], rows["valid"], out=self.explained)
        ops.uniform(self._shuffle_keys, self.seeds, self.updates, Stream.SHUFFLE)
        ops.shuffle(self._shuffle_keys, order=self._order, cursor=self._cursor)
        self._measure_heads()
        for x in (self.moved, self.losses, self._cursor):
            ops.fill(x, 0.0)  # the cursor too: `_measure_heads` took a minibatch
        ops.advance(self.updates)

    def run_epoch(self) -> None:
        """One pass over the rollout in shuffled minibatches."""
        for start in range(0, self.num_rows, self.batch_size):
            self.gradient_step(self._minibatch(min(self.batch_size, self.num_rows - start)))

    def run_last_epoch(self) -> None:
        """`run_epoch`, and adds up what is reported of its minibatches."""
        for start in range(0, self.num_rows, self.batch_size):
            part = self._minibatch(min(self.batch_size, self.num_rows - start))
            self.gradient_step(part)
            self._report(part)

    def _minibatch(self, count: int) -> Rows:
        part, names = self.batch.part(0, count), self._widths.gathered
        sources, out = [self.rollout[n] for n in names], [part[n] for n in names]
        ops.gather(sources, self._order, self._cursor, out=out)
        return part

    def gradient_step(self, batch: Rows) -> None:
        """A step of policy and critic on a minibatch."""
        obs, actions, evaluation = batch["obs"], batch.actions(), self._evaluation(batch)
        row_weights = self._row_weights(batch)

        # loss = vf_coef E[(V(s) - target)^2], with Q(s, a) for V(s) where the critic branches
        if self.offline is not None:
            self._learn_from_the_past(self.offline, batch.num_rows)
        else:
            if self.branching is not None and self.config.center_advantage == "batch":
                self.estimator.probs(batch)  # writes the `probs` that `actions` has
            critic_sees = self.sight.critic(obs, learns=True)
            predicted = self.critic.predict(critic_sees, actions)  # (P, 1, B, 1 or H)
            self._value_error(predicted, batch, row_weights)
            self.critic.backward(critic_sees, actions)
            self.sight.critic_backward(critic_sees)

        # loss = -sum_g E[min(r_g A_g, clip(r_g, 1 - c, 1 + c) A_g)] - ent_coef E[sum_h entropy_h]
        #        + kl_coef E[KL], with r_g = pi(a_g | s) / pi_old(a_g | s) of each group of heads
        x = critic_sees if self.sight.is_shared else self.sight.policy(obs, learns=True)
        self.actor.evaluate(x, actions, evaluation)  # log-probabilities and entropies
        if self.config.normalize_advantage == "batch":
            ops.standardize(batch["advantage"], row_weights, out=batch["advantage"])
        self._policy_loss(batch, batch["advantage"], row_weights, self.ent_coef, self.kl_coef)
        self.actor.backward(x, actions, evaluation)
        self.sight.policy_backward(x)

        if self.config.kl_coef:  # at every minibatch, as the paper's package does
            divergence, target = self.loss.columns(DIVERGENCE), self.config.kl_target
            ops.adapt_coefficient(divergence, self.kl_coef, target=target, out=self.kl_coef)
        self.optimizer.step()  # on the gradients of both, clipped together

    def _policy_loss(
        self, batch: Rows, advantage: Buffer, weights: Buffer, ent_coef: Buffer, kl_coef: Buffer
    ) -> None:
        """The clipped loss, and its gradient by log-probabilities, entropies and divergences."""
        new = self._evaluation(batch)
        loss_inputs = (new.log_prob, new.entropy, new.kl, batch["log_prob"], advantage, weights,
                       self.clip, ent_coef, kl_coef)  # fmt: skip
        ops.policy_loss(*loss_inputs, ratios=self.ratios, out=self.loss)
        ops.policy_loss.backward(*loss_inputs, ratios=self.ratios, out=self.loss)

    def _value_error(self, predicted: Buffer, batch: Rows, row_weights: Buffer) -> None:
        """The loss of what the critic predicted, and its gradient by that."""
        target, coef, clip = batch["target"], self.config.vf_coef, self.config.clip_range_vf
        if clip is None:
            error_inputs = predicted, target, row_weights
            ops.value_error(*error_inputs, coef=coef, huber=False, out=self.value_loss)
            ops.value_error.backward(*error_inputs, coef=coef, huber=False, out=self.value_loss)
        else:
            held = predicted, target, batch["value"], row_weights
            ops.clipped_value_error(*held, coef=coef, clip=clip, out=self.value_loss)
            ops.clipped_value_error.backward(*held, coef=coef, clip=clip, out=self.value_loss)

    def _learn_from_the_past(self, offline: OfflineRows, count: int) -> None:
        """The branching critic on past rows: one step and the next value as target."""
        past = self._past.part(0, count)
        offline.draw(past)
        self.estimator.next_values(past)
        self.estimator.one_step(past, past["next_value"])
        self.estimator.probs(past)  # of the current policy, whatever the policy was that acted
        ops.row_shares(past["valid"], out=past["row_weights"])
        seen = self.sight.critic(past["obs"], learns=True)
        predicted = self.critic.predict(seen, past.actions())
        self._value_error(predicted, past, past["row_weights"])
        self.critic.backward(seen, past.actions())
        self.sight.critic_backward(seen)

    def _evaluation(self, part: Rows) -> Evaluation:
        count = part.num_rows
        if count not in self._evaluations:
            self._evaluations[count] = Evaluation(
                self.keys.num_members, count, self.layout.num_heads,
                kl=bool(self.config.kl_coef), device=self.layout.device,
            )  # fmt: skip
        return self._evaluations[count]

    def _row_weights(self, part: Rows) -> Buffer:
        """1 / valid rows, (P, 1, B, 1); 0 where an environment was only reset."""
        row_weights = self._scratch("row weights", part.num_rows)
        ops.row_shares(part["valid"], out=row_weights)
        return row_weights

    @torch.no_grad()
    def head_shares(self, obs: Tensor) -> Tensor | None:
        """Shares of the credit (P, B, H) that sum to one, for observations (P, B, ...).

        They are those of the greedy action; None where the critic does not tell heads apart.
        """
        if self.branching is None:
            return None
        columns = {name: x.width for name, x in self.rollout.buffers.items() if "mask" not in name}
        shares = [
            self.estimator.shares(Rows.of(part, columns)).tensor[:, 0].clone()
            for part in torch.split(self.vector(obs), self._chunk, dim=-2)
        ]
        return self.layout.heads_in_order(torch.cat(shares, dim=-2))

    # --- what is reported -----------------------------------------------------------------------

    def _report(self, part: Rows) -> None:
        """Adds what the step on a minibatch has left behind to what is reported."""
        new, row_weights = self._evaluation(part), self._scratch("row weights", part.num_rows)
        ops.movement(
            new.log_prob, new.entropy, part["log_prob"], row_weights, self.clip, self.moved,
            ratios=self.ratios, out=self.moved,
        )  # fmt: skip
        for sums, x in zip(self.losses.split([4, 3]), (self.loss, self.value_loss), strict=True):
            ops.add(sums, x, out=sums)

    def _measure_heads(self) -> None:
        """Each head's share of the policy gradient, over the first minibatch: a report only.

        It overwrites gradients, which the first step overwrites again.
        """
        part = self._minibatch(self.batch_size)
        row_weights = self._row_weights(part)
        plain = part.get("plain")
        if self.config.normalize_advantage == "batch":
            for x in (part["advantage"], plain):
                if x is not None:
                    ops.standardize(x, row_weights, out=x)

        x = self.sight.policy(part["obs"])

        def backward(advantage: Buffer) -> None:
            self.actor.evaluate(x, part.actions(), self._evaluation(part))
            self._policy_loss(part, advantage, row_weights, self._zero, self._zero)
            self.actor.backward(x, part.actions(), self._evaluation(part))

        self.head_gradients.measure(backward, part["advantage"], plain)

    def metrics(self) -> Metrics:
        """What the last update reports: (P,) for a member, (P, H) for its heads."""
        steps = -(-self.num_rows // self.batch_size)
        moved = self.moved.tensor.flatten(1) / steps
        policy, value = (x.tensor.flatten(1) / steps for x in self.losses.split([4, 3]))
        names = "train/approx_kl", "train/clip_fraction", "train/joint_ratio"
        metrics = dict(zip(names, moved[:, :3].unbind(-1), strict=True)) | {
            "train/policy_gradient_loss": -policy[:, SURROGATE],
            "train/entropy_loss": -policy[:, ENTROPY],
            "train/value_loss": value[:, LOSS] / (self.config.vf_coef or 1.0),
            "train/explained_variance": self.explained.tensor.flatten().clone(),
            "train/grad_norm": self.optimizer.norm.tensor.flatten().clone(),
        }
        names = "heads/kl", "heads/clip_fraction", "heads/entropy"
        by_head = dict(zip(names, moved[:, 3:].chunk(3, dim=-1), strict=True))
        by_head["heads/gradient_share"] = self.head_gradients.shares.tensor.flatten(1).clone()
        rows = {"obs": self.rollout["obs"], "advantage": self.rollout["credit"]}
        if self.branching is not None:
            metrics["train/weighted_cosine"] = self.head_gradients.cosine.tensor.flatten().clone()
            by_head["heads/importance"] = self.estimator.weights.tensor.flatten(1).clone()
            rows["weight"] = self.rollout["weight"]
        metrics |= self._followed()
        metrics |= {name: self.layout.heads_in_order(x) for name, x in by_head.items()}
        if self._inspect is not None:
            metrics |= self._inspect({name: x.tensor[:, 0] for name, x in rows.items()})
        return metrics

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that later updates depend on, each with the member axis first."""
        own = {"kl_coef": self.kl_coef.tensor.flatten().clone()}
        past = {} if self.offline is None else self.offline.state_dict()
        return self.optimizer.state_dict() | self._clocks() | own | past

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        self.optimizer.load_state_dict(state)
        self.kl_coef.tensor.copy_(state["kl_coef"].view(-1, 1, 1, 1))
        self._set_clocks(state)
        if self.offline is not None:
            self.offline.load_state_dict(state)
