"""The PPO learner. Read `gradient_step`: it is the paper, in order, forward and then backward.

A plain critic gives all heads the same advantage. A branching critic (vdn, qplex) gives each head a
share of every residual, by how much the head mattered in that state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headwise.algorithms.inspect import inspectors
from headwise.engine.algorithms.ppo.credit import credit_weights, expected_mixture, head_importance
from headwise.engine.algorithms.ppo.diagnostics import Diagnostics, explained_variance
from headwise.engine.algorithms.ppo.offline import OfflineRows
from headwise.engine.algorithms.ppo.ratios import group_advantages, ratios_of
from headwise.engine.algorithms.ppo.rollout import Rows
from headwise.engine.factorizations.base import check_offers
from headwise.engine.factorizations.critics import BranchingCritic, critic_options, option_probs
from headwise.errors import ConfigError
from headwise.heads.blueprint import Blueprint, Importance
from headwise.heads.layout import Layout
from headwise.ops import (
    Buffer,
    Evaluation,
    Recorded,
    adapt_coefficient,
    add,
    advance,
    clipped_value_error,
    copy,
    discount_of,
    distribution,
    fill,
    gae,
    gather,
    in_use,
    movement,
    multiply,
    policy_loss,
    row_mean,
    row_shares,
    shuffle,
    standardize,
    td_target,
    uniform,
    value_error,
)
from headwise.population.keys import Stream
from headwise.population.store import Adam, Store, seeds_of, settings

if TYPE_CHECKING:
    from headwise.algorithms.base import Metrics, RolloutBatch, Task
    from headwise.algorithms.ppo import PPO

_CACHED_ROWS = 256
"""Rows that are looked at together on the CPU, so that what is worked on stays in the cache."""


class PPOLearner:
    """A population of PPO learners."""

    def __init__(self, config: PPO, task: Task) -> None:
        self.config, self.keys = config, task.keys
        kind, keys, device = task.factorization, task.keys, task.device
        kind.check(task.spec)
        for what in ("policy", "critic"):
            check_offers(kind, what, config.name)
        self.layout = Layout(task.spec, device, joint=kind.is_joint)
        self.features, self.num_envs = task.obs_size, task.num_slots
        self.length = max(config.rollout // task.num_slots, 1)
        self.num_rows = self.length * task.num_slots
        """Rows of a rollout (N)."""
        self.batch_size = min(config.minibatch, self.num_rows)
        chunk = min(_CACHED_ROWS, self.num_rows) if device.type == "cpu" else self.num_rows
        self._chunks = [(i, min(chunk, self.num_rows - i)) for i in range(0, self.num_rows, chunk)]
        plan = Blueprint(
            layout=self.layout,
            members=keys.num_members,
            features=task.obs_size,
            rows=max(self.batch_size, self.num_envs, chunk),
            device=device,
            hidden=config.hidden,
            activation=config.activation,
            kind=config.range_kind,
            policy_gain=config.policy_gain,
            mean_penalty=config.mean_penalty,
        )
        self.actor = kind.policy(plan)
        critic_plan = replace(
            plan,
            hidden=config.critic_hidden or config.hidden,
            activation=config.critic_activation,
            branch_width=config.branch_width,
            orthogonal=config.critic_orthogonal,
        )
        self.critic = kind.critic(critic_plan)
        self.branching = self.critic if isinstance(self.critic, BranchingCritic) else None
        """The critic, where it tells heads apart."""
        if self.branching is not None and config.value_clip is not None:
            raise ConfigError(
                f"value_clip holds the value of states near the old one, and the critic of "
                f"{kind.name!r} learns by the value of actions",
                got=f"value_clip={config.value_clip}",
                allowed="None",
                fix="Leave value_clip out, or use a factorization without a branching critic.",
            )
        self.store = Store(keys, [*self.actor.parts, *self.critic.parts])
        lr = config.member_values("lr", keys)
        self.optimizer = Adam(self.store, lr, max_norm=config.max_grad_norm)
        self.alive = self.optimizer.alive
        self.ratios = ratios_of(config, self.layout, joint=kind.joint_ratio)
        auto = config.importance == "auto"
        self.importance: Importance = kind.default_importance if auto else config.importance
        updates = max(task.total_steps // self.num_rows, 1)
        self._anneal_span = max(config.anneal_share * updates, 1.0)
        self.offline = OfflineRows(config.offline_rows) if config.offline_rows else None
        self._inspect = None if config.inspect is None else inspectors.get(config.inspect)

        def setting(name: str) -> Buffer:
            return settings(keys, config.member_values(name, keys), name)

        self.gamma, self.gae_lambda = setting("gamma"), setting("gae_lambda")
        self.clip, self.ent_coef = setting("clip"), setting("entropy_coef")
        self.kl_coef = settings(keys, config.kl_coef, "kl_coef")
        self._no_ent_coef, self._no_kl_coef = (settings(keys, 0.0, "none") for _ in range(2))
        self.seeds = seeds_of(keys)
        self.act_clock, self.updates = (self._buffer(columns=2) for _ in range(2))
        self._allocate(masked=self.layout.always_masks)

    # --- room -----------------------------------------------------------------------------------

    def _buffer(self, rows: int = 1, columns: int = 1, *, gradient: bool = False) -> Buffer:
        members, device = self.keys.num_members, self.layout.device
        return Buffer(members, rows, columns, gradient=gradient, device=device)

    def _rows(self, rows: int, widths: dict[str, int]) -> Rows:
        return Rows(self.keys.num_members, rows, widths, self.layout.device)

    def _allocate(self, *, masked: bool) -> None:
        """Makes room for rollouts with or without masks."""
        config, layout, critic = self.config, self.layout, self.branching
        heads, values, self.masked = layout.num_heads, self.critic.num_values, masked
        shares = heads if critic is not None else values
        one = dict.fromkeys(("reward", "terminated", "truncated", "next_value", "plain"), values)
        one |= dict.fromkeys(("reward", "terminated", "truncated"), 1)
        action = {"raw": heads, "unit": heads, "log_prob": heads}
        learned = {"obs": self.features, **action, "valid": 1, "value": values, "target": values}
        learned["advantage"] = 1 if shares == 1 else self.ratios.count
        if masked:
            learned["mask"] = one["next_mask"] = layout.total
        if config.kl_coef:
            learned["old"] = layout.total + 2 * layout.num_continuous
        if critic is not None:
            learned |= {"option": heads, "probs": critic.table.total, "plain": 1}
            if layout.is_conditional:
                learned["in_use"] = heads
            one |= {"importance": heads, "weight": heads}
        one |= {"next_obs": self.features, "credit": shares}
        self.rollout = self._rows(self.num_rows, one | learned)
        self._gathered = [
            name for name in learned
            if not (name == "probs" and config.centre == "minibatch")
            and not (name == "value" and config.value_clip is None)
        ]  # fmt: skip
        self.batch = self._rows(self.batch_size, learned)
        names = ("obs", "raw", "unit", "option", "in_use", "mask", "valid", "probs")
        past = {name: learned[name] for name in names if name in learned}
        past |= dict.fromkeys(("reward", "terminated", "next_value", "target", "share"), 1)
        past |= {"next_obs": self.features}
        past |= {"next_mask": layout.total} if masked else {}
        self._past = self._rows(self.batch_size, past) if self.offline is not None else None
        self._numbers = self._buffer(config.epochs, self.num_rows)
        self._order, self._cursor = (
            self._buffer(columns=config.epochs * self.num_rows),
            self._buffer(),
        )
        self._share_all = self._buffer(self.num_rows)
        self.loss, self.value_loss = (self._buffer(columns=n, gradient=True) for n in (4, 3))
        for x in (self.loss, self.value_loss):
            x.gradient[..., 0] = 1.0
        self.moved, self.losses = self._buffer(columns=3 + 3 * heads), self._buffer(columns=7)
        self._explained, self._weights = self._buffer(), self._buffer(columns=heads)
        self._evaluations: dict[int, Evaluation] = {}
        self._shares: dict[int, Buffer] = {}
        own = sum(part.size for part in self.actor.parts)
        self.diagnostics = Diagnostics(self.store.parameters.columns(0, own).slope, self.ratios)
        self.now = self._rows(
            self.num_envs,
            {"obs": self.features, **action} | ({"mask": layout.total} if masked else {}),
        )
        self._uniform = self._buffer(self.num_envs, self.actor.table.num_uniforms)
        device = layout.device
        self._act, self._greedy = (
            Recorded(self._act_once, device),
            Recorded(self._mode_once, device),
        )
        self._draw = Recorded(self._draw_once, device)
        self._begin = Recorded(self._prepare, device)
        self._epoch = Recorded(self._run_epoch, device)
        self._last_epoch = Recorded(lambda: self._run_epoch(report=True), device)

    # --- acting ---------------------------------------------------------------------------------

    def act(self, obs: Tensor, legal: Tensor | None = None) -> dict[str, Tensor]:
        """Actions (P, E, H) drawn from the policy, and what a rollout keeps beside them."""
        self._see(obs, legal)
        self._act()
        return self._acted()

    def policy(
        self, obs: Tensor, uniform: Tensor | None = None, legal: Tensor | None = None
    ) -> Tensor:
        """The greedy actions, or actions drawn by uniform numbers."""
        self._see(obs, legal)
        if uniform is None:
            self._greedy()
        else:
            self._uniform.tensor[:, 0].copy_(uniform)
            self._draw()
        return self._acted()["action"]

    def _see(self, obs: Tensor, legal: Tensor | None) -> None:
        mask = self.layout.mask(legal)
        self._meet(mask)
        self.now["obs"].tensor[:, 0].copy_(obs)
        if self.masked:
            self.now["mask"].tensor[:, 0].copy_(1.0 if mask is None else mask)

    def _meet(self, mask: Tensor | None) -> None:
        """Makes room for masks that come for the first time."""
        if mask is not None and not self.masked:
            self._allocate(masked=True)

    def _acted(self) -> dict[str, Tensor]:
        named = {"action": "unit", "raw": "raw", "log_prob": "log_prob"}
        found = {name: self.now[own].tensor[:, 0] for name, own in named.items()}
        return found | {"action": self.layout.from_learner(found["action"])}

    def _act_once(self) -> None:
        uniform(self._uniform, self.seeds, self.act_clock, Stream.ACT)
        self._draw_once()
        advance(self.act_clock)

    def _draw_once(self) -> None:
        now = self.now
        out = [now["raw"], now["unit"], now["log_prob"]]
        self.actor.sample(now["obs"], self._uniform, now.get("mask"), out)

    def _mode_once(self) -> None:
        now = self.now
        self.actor.mode(now["obs"], now.get("mask"), [now["raw"], now["unit"]])

    # --- learning -------------------------------------------------------------------------------

    def update(self, batch: RolloutBatch) -> Metrics:
        """Several passes over a rollout in shuffled minibatches."""
        self.load(batch)
        self._begin()
        if self.offline is not None:
            draws = self.keys.at(int(self.updates.longs[0, 0, 0, 0]) - 1)
            self.offline.add(self.rollout, draws, self.config.epochs)
        threads = torch.get_num_threads()
        self._epoch(self.config.epochs - 1, threads)
        self._last_epoch(1, threads)
        return self.metrics()

    def load(self, batch: RolloutBatch) -> None:
        """Takes in what happened, tensors (P, T, E, ...)."""
        layout, rows = self.layout, self.rollout
        mask, next_mask = layout.mask(batch.legal), layout.mask(batch.next_legal)
        self._meet(mask)
        rows = self.rollout
        for name in ("obs", "next_obs", "reward", "terminated", "truncated", "valid"):
            rows.write(name, getattr(batch, name))
        rows.write("unit", layout.to_learner(batch.action))
        rows.write("raw", batch.extra["raw"])
        rows.write("log_prob", batch.extra["log_prob"])
        if self.masked:
            for name, x in (("mask", mask), ("next_mask", next_mask)):
                to = rows[name].tensor
                to.fill_(1.0) if x is None else to.copy_(
                    x.expand(*batch.reward.shape, -1).reshape(to.shape)
                )

    def _prepare(self) -> None:
        """Advantages and targets, by the policy and the critic that collected the rollout."""
        config, rows, critic = self.config, self.rollout, self.branching
        for start, count in self._chunks:
            self._look(rows.part(start, count))
        row_shares(rows["valid"], out=self._share_all)
        trace = (rows["reward"], rows["value"], rows["next_value"], rows["terminated"],
                 rows["truncated"])  # fmt: skip
        rest = (self.gamma, self.gae_lambda)
        gae(*trace, None, *rest, num_envs=self.num_envs, out=rows["plain"])
        if critic is not None and config.critic_target == "one_step":
            self._one_step(rows["reward"], rows["next_value"], rows["terminated"], rows["target"])
        else:
            add(rows["value"], rows["plain"], out=rows["target"])
        if critic is None:
            copy(rows["plain"], out=rows["credit"])
        else:
            credit_weights(
                rows["importance"], self.updates, rows.get("in_use"), span=self._anneal_span,
                floor=config.importance_floor, out=rows["weight"],
            )  # fmt: skip
            row_mean(rows["weight"], out=self._weights)
            if config.weight_place == "inside":
                gae(*trace, rows["weight"], *rest, num_envs=self.num_envs, out=rows["credit"])
            else:
                multiply(rows["weight"], rows["plain"], out=rows["credit"])
        if config.normalise == "rollout":
            for x in (rows["plain"], rows["credit"]):
                standardize(x, self._share_all, out=x)
        if rows["credit"].width == 1:
            copy(rows["credit"], out=rows["advantage"])
        else:
            group_advantages(
                rows["credit"], ratios=self.ratios, mean=critic is None, out=rows["advantage"]
            )
        explained_variance(rows["value"], rows["target"], rows["valid"], out=self._explained)
        uniform(self._numbers, self.seeds, self.updates, Stream.SHUFFLE)
        shuffle(self._numbers, order=self._order, cursor=self._cursor)
        self._diagnose()
        for x in (self.moved, self.losses):
            fill(x, 0.0)
        fill(self._cursor, 0.0)
        advance(self.updates)

    def _look(self, part: Rows) -> None:
        """What policy and critic say of rows, each by itself."""
        config, critic = self.config, self.branching
        copy(self.critic.value(part["next_obs"]), out=part["next_value"])
        if critic is None:
            if config.kl_coef:
                y, std = self.actor.outputs(part["obs"], part.taken)
                distribution(y, std, part.get("mask"), table=self.actor.table, out=part["old"])
            copy(self.critic.value(part["obs"]), out=part["value"])
            return
        if config.correct_mixture:
            self._correct(critic, part, "next_obs", "next_mask", "next_value")
        y, std = self.actor.outputs(part["obs"], part.taken)
        if config.kl_coef:
            distribution(y, std, part.get("mask"), table=self.actor.table, out=part["old"])
        option_probs(
            y, std, part.get("mask"), table=self.actor.table, bins=critic.num_bins,
            out=part["probs"],
        )  # fmt: skip
        critic_options(
            part["unit"], table=self.actor.table, bins=critic.num_bins, out=part["option"]
        )
        if self.layout.is_conditional:
            in_use(part["option"], table=critic.table, out=part["in_use"])
        value, scores, _ = critic.net.forward([part["obs"]])
        copy(value, out=part["value"])
        chosen = critic.chosen(scores, part.taken)
        slope = None
        if self.importance not in ("uniform", "range"):
            slope = critic.slope(part["obs"], None if self.importance == "state" else chosen)
        head_importance(
            scores, chosen, part["probs"], part.get("mask"), slope, table=critic.table,
            kind=self.importance, out=part["importance"],
        )  # fmt: skip
        if config.correct_mixture:
            self._add_mixture(critic, scores, part["obs"], part["probs"], part["value"])

    def _correct(
        self, critic: BranchingCritic, part: Rows, obs: str, mask: str, value: str
    ) -> None:
        """Adds to V what a mixer adds on average, so that it is the value of the policy."""
        taken = part.taken._replace(mask=part.get(mask))
        y, std = self.actor.outputs(part[obs], taken)
        option_probs(
            y, std, part.get(mask), table=self.actor.table, bins=critic.num_bins, out=part["probs"]
        )
        _, scores, _ = critic.net.forward([part[obs]])
        self._add_mixture(critic, scores, part[obs], part["probs"], part[value])

    def _add_mixture(
        self, critic: BranchingCritic, scores: Buffer, obs: Buffer, probs: Buffer, value: Buffer
    ) -> None:
        weights = critic.mixture_weights(obs)
        if weights is not None:
            more = self._shares.setdefault(-1 - obs.num_rows * 2, self._buffer(obs.num_rows))
            expected_mixture(scores, probs, weights, table=critic.table, out=more)
            add(value, more, out=value)

    def _one_step(self, reward: Buffer, value: Buffer, terminated: Buffer, out: Buffer) -> None:
        """R + gamma V(s'), without V(s') where the task has ended."""
        discounts = self._discounts(terminated)
        td_target(reward, discounts, value, None, None, out=out)

    def _discounts(self, terminated: Buffer) -> Buffer:
        out = self._shares.setdefault(-terminated.num_rows, self._buffer(terminated.num_rows))
        discount_of(terminated, self.gamma, out=out)
        return out

    def _run_epoch(self, *, report: bool = False) -> None:
        """One pass over the rollout."""
        for start in range(0, self.num_rows, self.batch_size):
            count = min(self.batch_size, self.num_rows - start)
            part = self.batch.part(0, count)
            gather(
                [self.rollout[n] for n in self._gathered], self._order, self._cursor,
                out=[part[n] for n in self._gathered],
            )  # fmt: skip
            self.gradient_step(part)
            if report:
                self._report(part)

    def gradient_step(self, part: Rows) -> None:
        """A step of policy and critic on a minibatch."""
        config, obs, out, share = (
            self.config,
            part["obs"],
            self._evaluation(part),
            self._share(part),
        )
        if self.offline is not None and self.branching is not None:
            self._learn_from_the_past(self.branching, part.num_rows)
        self.actor.evaluate(obs, part.taken, out)
        if self.branching is not None and config.centre == "minibatch":
            y, std = self.actor.net.rows(part.num_rows), self.actor.std
            option_probs(
                y, std, part.get("mask"), table=self.actor.table, bins=self.branching.num_bins,
                out=part["probs"],
            )  # fmt: skip
        if self.offline is None:
            q = self.critic.predict(obs, part.taken)
            self._value_error(q, part, share)
            self.critic.backward(obs, part.taken)
        advantage = part["advantage"]
        if config.normalise == "minibatch":
            standardize(advantage, share, out=advantage)
        loss = (*self._terms(out), part["log_prob"], advantage, share, self.clip, self.ent_coef,
                self.kl_coef)  # fmt: skip
        policy_loss(*loss, ratios=self.ratios, out=self.loss)
        policy_loss.backward(*loss, ratios=self.ratios, out=self.loss)
        self.actor.backward(obs, part.taken, out)
        if config.kl_coef:
            adapt_coefficient(
                self.loss.columns(3), self.kl_coef, target=config.kl_target, out=self.kl_coef
            )
        self.optimizer.step()

    def _value_error(self, q: Buffer, part: Rows, share: Buffer) -> None:
        """How wrong the critic is, and the gradient of what it says."""
        coef, clip = self.config.value_coef, self.config.value_clip
        if clip is None:
            given = q, part["target"], share
            value_error(*given, coef=coef, huber=False, out=self.value_loss)
            value_error.backward(*given, coef=coef, huber=False, out=self.value_loss)
        else:
            held = q, part["target"], part["value"], share
            clipped_value_error(*held, coef=coef, clip=clip, out=self.value_loss)
            clipped_value_error.backward(*held, coef=coef, clip=clip, out=self.value_loss)

    def _learn_from_the_past(self, critic: BranchingCritic, rows: int) -> None:
        """The branching critic on rows of the past, one step and the next value as target."""
        assert self.offline is not None
        assert self._past is not None
        past = self._past.part(0, rows)
        self.offline.draw(past)
        value = past["next_value"]
        copy(critic.value(past["next_obs"]), out=value)
        if self.config.correct_mixture:
            self._correct(critic, past, "next_obs", "next_mask", "next_value")
        self._one_step(past["reward"], value, past["terminated"], past["target"])
        # Centered under the current policy, whatever the policy was that acted then.
        y, std = self.actor.outputs(past["obs"], past.taken)
        option_probs(
            y, std, past.get("mask"), table=self.actor.table, bins=critic.num_bins,
            out=past["probs"],
        )  # fmt: skip
        row_shares(past["valid"], out=past["share"])
        q = critic.predict(past["obs"], past.taken)
        self._value_error(q, past, past["share"])
        critic.backward(past["obs"], past.taken)

    def _terms(self, out: Evaluation) -> tuple[Buffer, Buffer, Buffer | None]:
        return out.log_prob, out.entropy, out.kl

    def _evaluation(self, part: Rows) -> Evaluation:
        count = part.num_rows
        if count not in self._evaluations:
            self._evaluations[count] = Evaluation(
                self.keys.num_members, count, self.layout.num_heads,
                kl=bool(self.config.kl_coef), device=self.layout.device,
            )  # fmt: skip
        return self._evaluations[count]

    def _share(self, part: Rows) -> Buffer:
        """What each row of a minibatch counts in means over rows with a transition."""
        share = self._shares.setdefault(part.num_rows, self._buffer(part.num_rows))
        row_shares(part["valid"], out=share)
        return share

    # --- what is reported -----------------------------------------------------------------------

    def _report(self, part: Rows) -> None:
        out, share = self._evaluation(part), self._shares[part.num_rows]
        movement(
            out.log_prob, out.entropy, part["log_prob"], share, self.clip, self.moved,
            ratios=self.ratios, out=self.moved,
        )  # fmt: skip
        for x, columns in ((self.loss, (0, 4)), (self.value_loss, (4, 3))):
            total = self.losses.columns(*columns)
            add(total, x, out=total)

    def _diagnose(self) -> None:
        """Each head's share of the policy gradient, over the first minibatch."""
        part = self.batch.part(0, self.batch_size)
        gather(
            [self.rollout[n] for n in self._gathered], self._order, self._cursor,
            out=[part[n] for n in self._gathered],
        )  # fmt: skip
        out, share = self._evaluation(part), self._share(part)
        advantages = [part["advantage"], *([part["plain"]] if self.branching is not None else [])]
        if self.config.normalise == "minibatch":
            for x in advantages:
                standardize(x, share, out=x)

        def backward(advantage: Buffer) -> None:
            self.actor.evaluate(part["obs"], part.taken, out)
            loss = (*self._terms(out), part["log_prob"], advantage, share, self.clip,
                    self._no_ent_coef, self._no_kl_coef)  # fmt: skip
            policy_loss(*loss, ratios=self.ratios, out=self.loss)
            policy_loss.backward(*loss, ratios=self.ratios, out=self.loss)
            self.actor.backward(part["obs"], part.taken, out)

        self.diagnostics.measure(backward, *advantages, *([None] if len(advantages) == 1 else []))

    def metrics(self) -> Metrics:
        """What the last update reports: (P,) for a member, (P, H) for its heads."""
        heads, steps = self.layout.num_heads, -(-self.num_rows // self.batch_size)
        moved = self.moved.tensor.flatten(1) / steps
        losses = self.losses.tensor.flatten(1) / steps
        found = dict(
            zip(
                ("train/approx_kl", "train/clip_fraction", "train/joint_ratio"),
                moved.T,
                strict=False,
            )
        )
        by_head = moved[:, 3:].unflatten(-1, (3, heads)).unbind(1)
        names = ("heads/kl", "heads/clip_fraction", "heads/entropy")
        found |= dict(zip(names, by_head, strict=True))
        found |= {
            "train/policy_gradient_loss": -losses[:, 1],
            "train/entropy_loss": -losses[:, 2],
            "train/value_loss": losses[:, 4] / (self.config.value_coef or 1.0),
            "train/explained_variance": self._explained.tensor.flatten().clone(),
            "train/grad_norm": self.optimizer.norm.tensor.flatten().clone(),
        }
        weighted = self.branching is not None
        found |= self.diagnostics.metrics(weighted=weighted)
        if weighted:
            found["heads/importance"] = self._weights.tensor.flatten(1).clone()
        if self._inspect is not None:
            named = {
                "obs": "obs",
                "advantage": "credit",
                **({"weight": "weight"} if weighted else {}),
            }
            found |= self._inspect({n: self.rollout[own].tensor[:, 0] for n, own in named.items()})
        return {
            name: self.layout.heads_in_order(x) if name.startswith("heads/") and x.shape[-1] == heads
            else x for name, x in found.items()
        }  # fmt: skip

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that later updates depend on, each with the member axis first."""
        own = {
            "kl_coef": self.kl_coef.tensor.flatten().clone(),
            "updates": self.updates.longs.flatten().clone(),
            "acts": self.act_clock.longs.flatten().clone(),
        }
        past = {} if self.offline is None else self.offline.state_dict()
        return self.optimizer.state_dict() | own | past

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        self.optimizer.load_state_dict(state)
        self.kl_coef.tensor.copy_(state["kl_coef"].view(-1, 1, 1, 1))
        for name, clock in (("updates", self.updates), ("acts", self.act_clock)):
            clock.longs.copy_(state[name].view(-1, 1, 1, 1))
        if self.offline is not None:
            self.offline.load_state_dict(state)
