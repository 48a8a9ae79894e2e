"""The PPO learner. Its settings are in `ppo.py`.

A plain critic gives all heads the same advantage. A branching critic (vdn, qplex) gives each head a
share of every residual, by how much the head mattered in that state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headwise.algorithms.advantages import Estimate, estimate_advantages
from headwise.algorithms.base import (
    Acted,
    Algorithm,
    LazyMetrics,
    Metrics,
    ReplayBatch,
    RolloutBatch,
    RolloutPlan,
    Task,
)
from headwise.algorithms.diagnostics import (
    RunningMeans,
    cosine,
    explained_variance,
    head_gradients,
    movement,
)
from headwise.algorithms.importance import annealed_alpha, importance_weights
from headwise.algorithms.inspect import inspectors
from headwise.algorithms.losses.policy_loss import PolicyLoss
from headwise.algorithms.losses.value_loss import ValueLoss
from headwise.algorithms.offline import OfflineRows, PastRows
from headwise.factorizations.base import Blueprint, Branching, Importance, offered
from headwise.factorizations.parts.layout import Layout
from headwise.population import (
    Adam,
    Clock,
    Draws,
    Initializer,
    Kept,
    Packed,
    Stream,
    batches_in_order,
    row_by_row,
    row_shares,
    shuffled,
    straight_gradients,
    take_rows,
)

if TYPE_CHECKING:
    from headwise.algorithms.ppo import PPO

Rows = dict[str, Tensor]
"""A rollout laid out as rows, (P, N, ...), by name."""


class PPOLearner(Algorithm):
    """A population of PPO learners."""

    def __init__(self, config: PPO, task: Task) -> None:
        self.config = config
        kind = task.factorization
        kind.check(task.spec)
        self.layout = Layout(task.spec, task.device)
        init = Initializer(task.keys)
        self.actor = offered(kind, "policy", config.name)(
            Blueprint(
                layout=self.layout,
                obs_size=task.obs_size,
                init=init,
                hidden=config.hidden,
                activation=config.activation,
                range_kind=config.range_kind,
                policy_gain=config.policy_gain,
            )
        )
        self.critic = offered(kind, "critic", config.name)(
            Blueprint(
                layout=self.layout,
                obs_size=task.obs_size,
                init=init,
                hidden=config.critic_hidden or config.hidden,
                activation=config.critic_activation,
                branch_width=config.branch_width,
                orthogonal=config.critic_orthogonal,
            )
        )
        self.branching = self.critic if isinstance(self.critic, Branching) else None
        """The critic, where it tells heads apart."""
        packed = Packed(self.actor, self.critic)
        lr = config.member_values("lr", task.keys)
        self.optimiser = Adam(packed, lr, max_norm=config.max_grad_norm)
        self.alive = self.optimiser.alive
        slots = task.num_slots
        self.plan: RolloutPlan = RolloutPlan(max(config.rollout // slots, 1))
        self.num_uniforms = self.actor.num_uniforms
        self.num_updates = max(task.total_steps // (self.plan.length * slots), 1)
        self.updates = Clock(task.device)
        self.gamma = config.member_values("gamma", task.keys)
        self.gae_lambda = config.member_values("gae_lambda", task.keys)
        self.policy_loss = PolicyLoss(
            config,
            self.actor,
            self.layout,
            joint=kind.joint_ratio,
            branching=self.branching is not None,
            clip=config.member_values("clip", task.keys),
            entropy_coef=config.member_values("entropy_coef", task.keys),
        )
        self.kl_coef = self.policy_loss.kl_coef
        self.value_loss = ValueLoss(config, self.actor, self.critic, kind.name, self.gamma)
        self.importance: Importance = (
            kind.default_importance if config.importance == "auto" else config.importance
        )
        self._inspect = None if config.inspect is None else inspectors.get(config.inspect)
        self.offline = OfflineRows(config.offline_rows) if config.offline_rows else None
        self.capturable = self.offline is None  # past rows grow in number
        one = torch.ones_like(self.gamma)
        self._weights = [one, config.value_coef * one]  # of the losses of policy and critic
        self.num_passes = config.epochs
        self._rollout = Kept()
        self._pass = torch.zeros(1, dtype=torch.int64, device=task.device)
        self._past: PastRows | None = None

    # --- acting ---------------------------------------------------------------------------------

    @torch.no_grad()
    def act(self, obs: Tensor, draws: Draws, legal: Tensor | None = None) -> Acted:
        """Actions drawn from the policy."""
        uniform = draws.uniform(Stream.ACT, obs.shape[-2], self.actor.num_uniforms)
        raw, judged = self.actor.sample(obs, uniform, legal)
        return Acted(self.actor.to_unit(raw), {"raw": raw, "log_prob": judged.log_prob})

    @torch.no_grad()
    def policy(
        self, obs: Tensor, uniform: Tensor | None = None, legal: Tensor | None = None
    ) -> Tensor:
        """The mode of the policy, or a draw from it."""
        if uniform is None:
            raw = self.actor.mode(obs, legal)
        else:
            raw, _ = self.actor.sample(obs, uniform, legal)
        return self.actor.to_unit(raw)

    # --- learning -------------------------------------------------------------------------------

    def update(self, batch: RolloutBatch | ReplayBatch, draws: Draws) -> LazyMetrics:
        """Several passes over a rollout in shuffled minibatches."""
        assert isinstance(batch, RolloutBatch)
        metrics = self.begin(batch, draws)
        for _ in range(self.num_passes - 1):
            self.go_over()
        metrics |= self.finish()
        return lambda: metrics

    def begin(self, batch: RolloutBatch, draws: Draws) -> Metrics:
        """Advantages and targets of a rollout, and the order of its rows in every pass."""
        rows, metrics = self._prepare(batch)
        num_rows = rows["obs"].shape[-2]
        orders = shuffled(draws.uniform(Stream.SHUFFLE, self.num_passes, num_rows))
        if self.offline is not None and self.branching is not None:
            self.offline.add(rows | _successors(batch, legal=self.config.correct_mixture))
            self._past = self.offline.draw(draws, self.num_passes, num_rows)
        first = orders[..., 0, : self.config.minibatch]
        metrics |= self._diagnose({name: take_rows(x, first) for name, x in rows.items()})
        self._rollout.keep(rows | {"orders": orders})
        self._pass.zero_()
        return metrics

    def go_over(self) -> None:
        """One pass over the rollout."""
        for part in self._minibatches():
            self._step(part, report=False)

    def finish(self) -> Metrics:
        """The last pass; what it tells are means over its minibatches."""
        means = RunningMeans()
        for part in self._minibatches():
            means.add(self._step(part, report=True))
        self.updates.advance()
        return means.result() | {"train/grad_norm": self.optimiser.norm.clone()}

    def _minibatches(self) -> Iterator[Rows]:
        """Those of the pass that has come."""
        rows = dict(self._rollout.tensors)
        order = rows.pop("orders").index_select(-2, self._pass).squeeze(-2)
        parts = batches_in_order(rows, order, self.config.minibatch)
        for k, part in enumerate(parts):
            if self._past is not None:
                epoch, size = int(self._pass), part["obs"].shape[-2]
                part |= self._past(epoch, k * self.config.minibatch, size)
            yield part
        self._pass.add_(1)

    def _step(self, part: Rows, *, report: bool) -> Metrics:
        """A gradient step, and what it reports."""
        with straight_gradients():
            losses, metrics = self._losses(part, report=report)
        torch.autograd.backward(losses, self._weights)
        self.optimiser.step()
        return metrics

    @torch.no_grad()
    def _prepare(self, batch: RolloutBatch) -> tuple[Rows, Metrics]:
        """Advantages and targets, by policy and critic as they were when the rollout was made."""
        rows = {
            "obs": batch.obs.flatten(-3, -2),
            "raw": batch.extra["raw"].flatten(-3, -2),
            "log_prob": batch.extra["log_prob"].flatten(-3, -2),
            # Zeros and ones, because it is multiplied with in every minibatch.
            "valid": batch.valid.flatten(-2).unsqueeze(-1).to(batch.obs.dtype),
        }
        if batch.legal is not None:
            rows["legal"] = batch.legal.flatten(-4, -3)
        metrics: Metrics = {}
        weights = None
        action = batch.action.flatten(-3, -2)
        following = {"action": action, "next_obs": batch.next_obs.flatten(-3, -2)}
        if batch.next_legal is not None:
            following["next_legal"] = batch.next_legal.flatten(-4, -3)
        rows |= row_by_row(self._look, rows | following)
        if self.branching is not None:
            alpha = annealed_alpha(self.updates.now, self.num_updates, self.config.anneal_share)
            in_use = self.layout.active(action) if self.layout.is_conditional else None
            raw = rows.pop("importance")
            weights = importance_weights(raw, alpha, self.config.importance_floor, in_use)
            metrics["heads/importance"] = weights.mean(-2)
        rows |= self._estimate(batch, rows["value"], rows.pop("next_value"), weights)
        if self._inspect is not None:
            metrics |= self._inspect(rows if weights is None else rows | {"weight": weights})
        metrics["train/explained_variance"] = explained_variance(rows["value"], rows["target"])
        return rows, metrics

    def _look(self, part: Rows) -> Rows:
        """What policy and critic say of rows, each by itself."""
        obs, following, branching = part["obs"], part["next_obs"], self.branching
        found: Rows = {"next_value": self.critic.value(following)}
        if branching is not None or self.config.kl_coef:
            heads = self.actor.judge(obs, part["raw"], part.get("legal")).heads
        if self.config.kl_coef:
            found |= {f"old_{name}": x for name, x in heads.tensors().items()}
        if branching is None:
            return found | {"value": self.critic.value(obs)}
        found["bins"] = branching.bins(part["action"])
        masses = branching.masses(heads)
        if self.config.centre == "rollout":
            found["masses"] = masses
        value, advantage = branching.centred(obs, masses)
        found["value"] = value.unsqueeze(-1)
        found["importance"] = branching.importance(
            advantage, obs, found["bins"], self.importance, part.get("legal")
        )
        if self.config.correct_mixture:
            later = self.actor.judge(following, part["raw"], part.get("next_legal")).heads
            for name, x, chances in (
                ("value", obs, masses),
                ("next_value", following, branching.masses(later)),
            ):
                found[name] = found[name] + branching.expected_mixture(x, chances).unsqueeze(-1)
        return found

    def _estimate(
        self, batch: RolloutBatch, value: Tensor, next_value: Tensor, weights: Tensor | None
    ) -> Rows:
        grid = batch.reward.shape
        found: Estimate = estimate_advantages(
            batch,
            value.view(*grid, -1),
            next_value.view(*grid, -1),
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
            weights=None if weights is None else weights.view(*grid, -1),
            weight_place=self.config.weight_place,
            critic_target=self.config.critic_target if self.branching is not None else "lambda",
            normalise=self.config.normalise == "rollout",
        )
        return {name: x.flatten(-3, -2) for name, x in found._asdict().items()}

    def _losses(self, part: Rows, *, report: bool) -> tuple[list[Tensor], Metrics]:
        """The losses of policy and critic, (P,) each, and what to report of them, if anything."""
        share = row_shares(part["valid"])  # of the rows that count in means over the minibatch
        policy = self.policy_loss(part, share)
        value_loss = self.value_loss(part, policy.judged, share)
        metrics: Metrics = {}
        if report:
            judged = policy.judged
            metrics = {
                "train/policy_gradient_loss": -policy.surrogate,
                "train/value_loss": value_loss,
                "train/entropy_loss": -policy.entropy,
                "heads/entropy": judged.entropy.mean(-2),
            } | movement(
                judged.log_prob - part["log_prob"],
                policy.ratio,
                part["valid"],
                self.policy_loss.clip,
            )
            clipped = metrics["heads/clip_fraction"]
            metrics["heads/clip_fraction"] = self.policy_loss.by_head(clipped)
        return [policy.loss, value_loss], metrics

    def _diagnose(self, part: Rows) -> Metrics:
        """Each head's share of the policy gradient, and what importance weights do to it."""
        judged = self.actor.judge(part["obs"], part["raw"], part.get("legal"))
        parameters = list(self.actor.parameters())
        surrogate, _ = self.policy_loss.surrogate(judged, part, part["advantage"])
        by_head = head_gradients(surrogate.mean(-2), parameters)
        norms = torch.linalg.vector_norm(by_head, dim=-1).transpose(-1, -2)
        share = norms / norms.sum(-1, keepdim=True).clamp_min(1e-12)
        metrics = {"heads/gradient_share": self.policy_loss.by_head(share, shared_out=True)}
        if self.branching is not None:
            plain, _ = self.policy_loss.surrogate(
                judged, part, part["plain"].expand_as(part["advantage"])
            )
            unweighted = head_gradients(plain.mean(-2), parameters)
            metrics["train/weighted_cosine"] = cosine(by_head.sum(-3), unweighted.sum(-3))
        return metrics

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that later updates depend on."""
        counts = torch.full_like(self.kl_coef, self.updates.read(), dtype=torch.int64)
        past = {} if self.offline is None else self.offline.state_dict()
        own = {"kl_coef": self.kl_coef.clone(), "updates": counts}
        return self.optimiser.state_dict() | own | past

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        self.optimiser.load_state_dict(state)
        self.kl_coef.copy_(state["kl_coef"])
        self.updates.set(int(state["updates"].max()))
        if self.offline is not None:
            self.offline.load_state_dict(state)


def _successors(batch: RolloutBatch, *, legal: bool) -> Rows:
    """What one-step targets need of a rollout, as rows; with masks if they ask for the policy."""
    found = {
        "next_obs": batch.next_obs.flatten(-3, -2),
        "reward": batch.reward.flatten(-2).unsqueeze(-1),
        "terminated": batch.terminated.flatten(-2).unsqueeze(-1),
    }
    if legal and batch.next_legal is not None:
        found["next_legal"] = batch.next_legal.flatten(-4, -3)
    return found
