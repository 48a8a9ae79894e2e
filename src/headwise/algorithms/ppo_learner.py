"""The PPO learner. Its settings are in `ppo.py`.

A plain critic gives all heads the same advantage. A branching critic (vdn, qplex) gives each head a
share of every residual, by how much the head mattered in that state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headwise.algorithms.advantages import Estimate, estimate_advantages, standardised
from headwise.algorithms.base import Acted, Metrics, ReplayBatch, RolloutBatch, RolloutPlan, Task
from headwise.algorithms.diagnostics import (
    RunningMeans,
    cosine,
    explained_variance,
    head_gradients,
)
from headwise.algorithms.importance import annealed_alpha, importance_weights
from headwise.algorithms.inspect import inspectors
from headwise.algorithms.offline import OfflineRows
from headwise.algorithms.returns import td_target
from headwise.factorizations.base import Blueprint, Judged, offered
from headwise.factorizations.critics import Importance
from headwise.factorizations.layout import Layout
from headwise.population import (
    Adam,
    Clock,
    Draws,
    Initializer,
    Packed,
    Stream,
    along,
    member_mean,
    shuffled,
    slice_rows,
    take_rows,
)

if TYPE_CHECKING:
    from headwise.algorithms.ppo import PPO

Rows = dict[str, Tensor]
"""A rollout laid out as rows, (P, N, ...), by name."""


class PPOLearner:
    """A population of PPO learners."""

    def __init__(self, config: PPO, task: Task) -> None:
        self.config = config
        kind = task.factorization
        kind.check(task.spec)
        self.layout = Layout(task.spec, task.device)
        init = Initializer(task.keys)
        self.actor: Any = offered(kind, "policy", config.name)(
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
        self.critic: Any = offered(kind, "critic", config.name)(
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
        packed = Packed(self.actor, self.critic)
        lr = config.member_values("lr", task.keys)
        self.optimiser = Adam(packed, lr, max_norm=config.max_grad_norm)
        self.alive = self.optimiser.alive
        slots = task.num_slots
        self.plan = RolloutPlan(max(config.rollout // slots, 1))
        self.num_updates = max(task.total_steps // (self.plan.length * slots), 1)
        self.updates = Clock(task.device)
        self.gamma = config.member_values("gamma", task.keys)
        self.gae_lambda = config.member_values("gae_lambda", task.keys)
        self.clip = config.member_values("clip", task.keys)
        self.entropy_coef = config.member_values("entropy_coef", task.keys)
        self.kl_coef = torch.full_like(lr, config.kl_coef)
        self.branching: bool = self.critic.branching
        chain = kind.name in ("ar", "joint")
        self.ratio = ("joint" if chain else "per_head") if config.ratio == "auto" else config.ratio
        default: Importance = "grad" if kind.name == "qplex" else "range"
        self.importance: Importance = default if config.importance == "auto" else config.importance
        self._inspect = None if config.inspect is None else inspectors.get(config.inspect)
        self.offline = OfflineRows(config.offline_rows) if config.offline_rows else None

    # --- acting ---------------------------------------------------------------------------------

    @property
    def capturable(self) -> bool:
        """Whether an update works on the same tensors every time; past rows grow in number."""
        return self.offline is None

    @property
    def num_uniforms(self) -> int:
        """Uniform numbers that `policy` takes to draw an action."""
        count: int = self.actor.num_uniforms
        return count

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
        unit: Tensor = self.actor.to_unit(raw)
        return unit

    # --- learning -------------------------------------------------------------------------------

    def update(self, batch: RolloutBatch | ReplayBatch, draws: Draws) -> Metrics:
        """Several passes over a rollout in shuffled minibatches."""
        assert isinstance(batch, RolloutBatch)
        rows, metrics = self._prepare(batch)
        num_rows = rows["obs"].shape[-2]
        orders = shuffled(draws.uniform(Stream.SHUFFLE, self.config.epochs, num_rows))
        means = RunningMeans()
        past = None
        if self.offline is not None and self.branching:
            self.offline.add(rows | _successors(batch))
            past = self.offline.draw(draws, self.config.epochs, num_rows)
        for epoch in range(self.config.epochs):
            taken = {name: take_rows(x, orders[..., epoch, :]) for name, x in rows.items()}
            for start in range(0, num_rows, self.config.minibatch):
                size = min(self.config.minibatch, num_rows - start)
                part = {name: slice_rows(x, start, size) for name, x in taken.items()}
                if past is not None:
                    part |= past(epoch, start, size)
                if epoch == 0 and start == 0:
                    metrics |= self._diagnose(part)
                last = epoch == self.config.epochs - 1
                loss, numbers = self._loss(part, report=last)
                torch.autograd.backward(loss.sum())
                self.optimiser.step()
                if last:
                    means.add(numbers)
        self.updates.advance()
        return metrics | means.result() | {"train/grad_norm": self.optimiser.norm.clone()}

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
        if not self.branching:
            rows["value"] = self.critic.value(rows["obs"])
        if self.branching or self.config.kl_coef:
            heads = self.actor.judge(rows["obs"], rows["raw"], rows.get("legal")).heads
        if self.config.kl_coef:
            rows |= {f"old_{name}": x for name, x in heads.tensors().items()}
        if self.branching:
            rows["bins"] = self.critic.bins(batch.action.flatten(-3, -2))
            rows["masses"] = self.critic.masses(heads)
            value, advantage = self.critic.centred(rows["obs"], rows["masses"])
            rows["value"] = value.unsqueeze(-1)
            raw = self.critic.importance(advantage, rows["obs"], rows["bins"], self.importance)
            alpha = annealed_alpha(self.updates.now, self.num_updates, self.config.anneal_share)
            in_use = None
            if self.layout.is_conditional:
                in_use = self.layout.active(batch.action.flatten(-3, -2))
            weights = importance_weights(raw, alpha, self.config.importance_floor, in_use)
            metrics["heads/importance"] = weights.mean(-2)
            rows["weight"] = weights
        rows |= self._estimate(batch, rows, weights)
        if self._inspect is not None:
            metrics |= self._inspect(rows)
        metrics["train/explained_variance"] = explained_variance(rows["value"], rows["target"])
        return rows, metrics

    def _estimate(self, batch: RolloutBatch, rows: Rows, weights: Tensor | None) -> Rows:
        values = [rows["value"], self.critic.value(batch.next_obs.flatten(-3, -2))]
        if self.branching and self.config.correct_mixture:
            for k, x in enumerate((batch.obs, batch.next_obs)):
                obs = x.flatten(-3, -2)
                masses = self.critic.masses(self.actor.judge(obs, rows["raw"]).heads)
                values[k] = values[k] + self.critic.expected_mixture(obs, masses).unsqueeze(-1)
        grid = batch.reward.shape
        found: Estimate = estimate_advantages(
            batch,
            *(value.view(*grid, -1) for value in values),
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
            weights=None if weights is None else weights.view(*grid, -1),
            weight_place=self.config.weight_place,
            critic_target=self.config.critic_target if self.branching else "lambda",
            normalise=self.config.normalise == "rollout",
        )
        return {name: x.flatten(-3, -2) for name, x in found._asdict().items()}

    def _loss(self, part: Rows, *, report: bool) -> tuple[Tensor, Metrics]:
        """The loss of each member, (P,), and what to report of it, if anything."""
        judged = self.actor.judge(part["obs"], part["raw"], part.get("legal"))
        valid = part["valid"]
        surrogate, ratio = self._surrogate(judged, part, part["advantage"])
        policy_loss = -member_mean(surrogate.sum(-1, keepdim=True), valid)
        entropy = member_mean(self._total_entropy(judged.entropy), valid)
        value_loss = self._value_loss(part, judged)
        loss = policy_loss + self.config.value_coef * value_loss - self.entropy_coef * entropy
        metrics: Metrics = {}
        if report:
            metrics = {
                "train/policy_gradient_loss": policy_loss,
                "train/value_loss": value_loss,
                "train/entropy_loss": -entropy,
                "heads/entropy": judged.entropy.mean(-2),
            } | self._movement(judged.log_prob - part["log_prob"], ratio, valid)
        if self.config.kl_coef:
            loss = loss + self._kl_penalty(judged, part)
        if self.config.mean_penalty and judged.heads.ranges is not None:
            mean = judged.heads.ranges.tensors()[0]
            far = torch.where(mean.abs() > 4.0, mean.square(), 0.0)
            loss = loss + self.config.mean_penalty * member_mean(far)
        return loss, metrics

    @torch.no_grad()
    def _movement(self, log_ratio: Tensor, ratio: Tensor, valid: Tensor) -> Metrics:
        """How far the policy has come from the one that acted."""
        outside = ((ratio - 1.0).abs() > along(self.clip, ratio)).float()
        kl = log_ratio.exp() - 1.0 - log_ratio
        return {
            "train/approx_kl": member_mean(kl.sum(-1, keepdim=True), valid),
            "train/clip_fraction": member_mean(outside, valid),
            "train/joint_ratio": member_mean(log_ratio.sum(-1, keepdim=True).exp(), valid),
            "heads/kl": kl.mean(-2),
            "heads/clip_fraction": outside.mean(-2),
        }

    def _surrogate(self, judged: Judged, part: Rows, advantage: Tensor) -> tuple[Tensor, Tensor]:
        """The clipped objective of each column of ratios, (P, B, G), and the ratios."""
        log_ratio = judged.log_prob - part["log_prob"]
        if self.ratio == "joint":
            log_ratio = log_ratio.sum(-1, keepdim=True)
            advantage = advantage.sum(-1, keepdim=True)
        elif self.ratio == "ranges_joint" and self.layout.num_ranges > 1:
            choices, ranges = self.layout.choices, self.layout.ranges
            together = log_ratio.index_select(-1, ranges).sum(-1, keepdim=True)
            log_ratio = torch.cat([log_ratio.index_select(-1, choices), together], dim=-1)
            if advantage.shape[-1] == self.layout.num_heads:  # a share of the credit for each head
                share = advantage.index_select(-1, ranges).sum(-1, keepdim=True)
                advantage = torch.cat([advantage.index_select(-1, choices), share], dim=-1)
        if self.config.normalise == "minibatch":
            advantage = standardised(advantage, part["valid"])
        ratio = log_ratio.clamp_max(20.0).exp()
        clip = along(self.clip, ratio)
        clipped = torch.minimum(torch.maximum(ratio, 1.0 - clip), 1.0 + clip)
        return torch.minimum(ratio * advantage, clipped * advantage), ratio

    def _value_loss(self, part: Rows, judged: Judged) -> Tensor:
        if "past_obs" in part:
            return self._offline_loss(part)
        if self.branching:
            masses = part["masses"]
            if self.config.centre == "minibatch":
                masses = self.critic.masses(judged.heads).detach()
            predicted = self.critic.predict(part["obs"], part["bins"], masses)
        else:
            predicted = self.critic.value(part["obs"])
        target, valid = part["target"], part["valid"]
        loss = member_mean((predicted - target).square(), valid)
        if self.config.value_clip is not None:
            change = (predicted - part["value"]).clamp(
                -self.config.value_clip, self.config.value_clip
            )
            held = member_mean((part["value"] + change - target).square(), valid)
            loss = torch.maximum(loss, held)
        return loss

    def _offline_loss(self, part: Rows) -> Tensor:
        """The branching critic on rows of the past, one step and the next value as target."""
        obs, following = part["past_obs"], part["past_next_obs"]
        with torch.no_grad():
            # Centred under the current policy, whatever the policy was that acted then.
            heads = self.actor.judge(obs, part["past_raw"], part.get("past_legal")).heads
            masses = self.critic.masses(heads)
            gamma = along(self.gamma, part["past_reward"])
            target = td_target(
                part["past_reward"], self.critic.value(following), part["past_terminated"], gamma
            )
        predicted = self.critic.predict(obs, part["past_bins"], masses)
        return member_mean((predicted - target).square(), part["past_valid"])

    def _total_entropy(self, entropy: Tensor) -> Tensor:
        """The heads' entropies (P, B, G) as one number for each row, (P, B, 1)."""
        if self.config.range_entropy == "sum" or self.layout.num_ranges < 2:
            return entropy.sum(-1, keepdim=True)
        ranges = entropy.index_select(-1, self.layout.ranges).mean(-1, keepdim=True)
        return entropy.index_select(-1, self.layout.choices).sum(-1, keepdim=True) + ranges

    def _kl_penalty(self, judged: Judged, part: Rows) -> Tensor:
        """Beta times the divergence; beta grows while that is too large, and shrinks again."""
        tensors = {n.removeprefix("old_"): x for n, x in part.items() if n.startswith("old_")}
        kl = member_mean(judged.heads.rebuilt(tensors).kl(judged.heads).sum(-1, keepdim=True))
        penalty = self.kl_coef.clone() * kl
        with torch.no_grad():
            target = self.config.kl_target
            factor = torch.where(kl > target, 1.5, torch.where(kl < target / 1.5, 1 / 1.5, 1.0))
            self.kl_coef.copy_((self.kl_coef * factor).clamp(1e-4, 100.0))
        return penalty

    def _diagnose(self, part: Rows) -> Metrics:
        """Each head's share of the policy gradient, and what importance weights do to it."""
        judged = self.actor.judge(part["obs"], part["raw"], part.get("legal"))
        parameters = list(self.actor.parameters())
        surrogate, _ = self._surrogate(judged, part, part["advantage"])
        by_head = head_gradients(surrogate.mean(-2), parameters)
        norms = torch.linalg.vector_norm(by_head, dim=-1).transpose(-1, -2)
        share = norms / norms.sum(-1, keepdim=True).clamp_min(1e-12)
        metrics = {"heads/gradient_share": share}
        if self.branching:
            plain, _ = self._surrogate(judged, part, part["plain"].expand_as(part["advantage"]))
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


def _successors(batch: RolloutBatch) -> Rows:
    """What one-step targets need of a rollout, as rows."""
    return {
        "next_obs": batch.next_obs.flatten(-3, -2),
        "reward": batch.reward.flatten(-2).unsqueeze(-1),
        "terminated": batch.terminated.flatten(-2).unsqueeze(-1),
    }
