"""From a rollout to advantages and targets, by the policy and the critic that collected it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headwise import ops
from headwise.algorithms.ppo.buffers import Rows, Sight
from headwise.algorithms.ppo.credit import credit_weights, expected_mixture, head_importance
from headwise.algorithms.ppo.ratios import group_advantages
from headwise.factorizations.critics import BranchingCritic, critic_options, option_probs
from headwise.heads.blueprint import Critic, Importance, Policy
from headwise.heads.layout import Layout
from headwise.ops import Buffer, RatioGroups, Scratch, operation

if TYPE_CHECKING:
    from headwise.algorithms.ppo import PPO


class Estimator:
    """Advantages and targets of a rollout.

    A plain critic gives all heads the same advantage. A branching critic gives each head a share of
    every residual, by how much the head mattered in that state.

    Args:
        sight: What policy and critic see of observations.
        importance: How a branching critic tells how much heads matter.
        ratios: Which heads have a ratio together.
        gamma: Discounts, (P, 1, 1, 1).
        gae_lambda: Trace decays, (P, 1, 1, 1).
        num_envs: Environment copies (E).
    """

    def __init__(
        self,
        config: PPO,
        layout: Layout,
        actor: Policy,
        critic: Critic,
        sight: Sight,
        importance: Importance,
        ratios: RatioGroups,
        gamma: Buffer,
        gae_lambda: Buffer,
        num_envs: int,
    ) -> None:
        self.config, self.layout, self.actor, self.critic = config, layout, actor, critic
        self.sight = sight
        self.branching = critic if isinstance(critic, BranchingCritic) else None
        """The critic, where it tells heads apart."""
        self.importance, self.ratios = importance, ratios
        self.gamma, self.gae_lambda, self.num_envs = gamma, gae_lambda, num_envs
        self.span = 1.0
        """Updates after which importance weights apply in full."""
        self._scratch = Scratch(gamma.members, layout.device)
        self.weights = self._scratch("weights", 1, layout.num_heads)
        """The mean of each head's share of the credit, (P, 1, 1, H)."""

    def run(self, rows: Rows, updates: Buffer, chunk: int) -> None:
        """Advantages and targets of all rows.

        Args:
            rows: The rollout.
            updates: The clock of updates, (P, 1, 1, 2).
            chunk: Rows that are evaluated together.
        """
        config, critic = self.config, self.branching
        for start in range(0, rows.num_rows, chunk):
            self._evaluate(rows.part(start, min(chunk, rows.num_rows - start)))
        # A = sum_k (gamma lambda)^k delta_(t+k), with delta = r + gamma V(s') - V(s)
        names = ("reward", "value", "next_value", "terminated", "truncated")
        trace = [rows[name] for name in names]
        rest = self.gamma, self.gae_lambda
        ops.gae(*trace, None, *rest, num_envs=self.num_envs, out=rows["plain"])
        # What the critic learns: V + A, the lambda-return, or r + gamma times the next value
        if critic is not None and config.critic_target == "one_step":
            self.one_step(rows, rows["next_value"])
        elif critic is not None and config.critic_target == "one_step_q":
            given = rows["q"], *(rows[name] for name in ("next_value", "terminated", "truncated"))
            value_of_next(*given, num_envs=self.num_envs, out=rows["next_q"])
            self.one_step(rows, rows["next_q"])
        else:
            ops.add(rows["value"], rows["plain"], out=rows["target"])
        # What the policy learns: A for every head, or with weights w_h of the heads, which sum to
        # one, A_h = sum_k (gamma lambda)^k w_h delta_(t+k), or w_h A
        if critic is None:
            ops.copy(rows["plain"], out=rows["credit"])
        else:
            credit_weights(
                rows["importance"], updates, rows.get("in_use"), span=self.span,
                floor=config.importance_floor, signed=self.importance == "signed",
                out=rows["weight"],
            )  # fmt: skip
            ops.row_mean(rows["weight"], out=self.weights)
            if config.weight_place == "inside":
                ops.gae(*trace, rows["weight"], *rest, num_envs=self.num_envs, out=rows["credit"])
            else:
                ops.multiply(rows["weight"], rows["plain"], out=rows["credit"])
        if config.normalize_advantage == "rollout":
            row_weights = self._scratch("row weights", rows.num_rows)
            ops.row_shares(rows["valid"], out=row_weights)
            for x in (rows["plain"], rows["credit"]):
                ops.standardize(x, row_weights, out=x)
        if rows["credit"].width == 1:
            ops.copy(rows["credit"], out=rows["advantage"])
        else:
            group_advantages(
                rows["credit"], ratios=self.ratios, mean=critic is None, out=rows["advantage"]
            )

    def one_step(self, rows: Rows, next_value: Buffer) -> None:
        """Writes target = r + gamma (1 - terminated) next value."""
        discount = self._scratch("discount", rows.num_rows)
        ops.discount_of(rows["terminated"], self.gamma, out=discount)
        ops.td_target(rows["reward"], discount, next_value, None, None, out=rows["target"])

    def next_values(self, rows: Rows) -> None:
        """V of the true successors."""
        x = self.sight.critic(rows["next_obs"])
        ops.copy(self.critic.value(x), out=rows["next_value"])
        if self.branching is not None and self.config.correct_mixture:
            self.probs(rows, "next_obs", "next_mask")
            self._add_expected_mixture(self.branching, rows, x, "next_value")

    def probs(self, rows: Rows, obs: str = "obs", mask: str = "mask") -> None:
        """How likely the policy is to choose each option of a branching critic."""
        assert self.branching is not None
        y, std = self.actor.outputs(self.sight.policy(rows[obs]), rows.actions(mask))
        option_probs(
            y, std, rows.get(mask), table=self.actor.table, bins=self.branching.num_bins,
            out=rows["probs"],
        )  # fmt: skip

    def _evaluate(self, rows: Rows) -> None:
        """Values, probabilities and importance of each row by itself."""
        critic = self.branching  # None: a plain value
        config = self.config
        self.next_values(rows)
        if config.kl_coef:
            actions = rows.actions()
            y, std = self.actor.outputs(self.sight.policy(rows["obs"]), actions)
            legal = self.actor.legal(actions)
            ops.distribution(y, std, legal, table=self.actor.table, out=rows["old"])
        x = self.sight.critic(rows["obs"])
        if critic is None:
            ops.copy(self.critic.value(x), out=rows["value"])
            return
        self.probs(rows)
        ops.copy(self._write_importance(critic, rows, x, self.importance), out=rows["value"])
        if config.correct_mixture:
            self._add_expected_mixture(critic, rows, x, "value")

    def _write_importance(
        self, critic: BranchingCritic, rows: Rows, x: Buffer, kind: Importance
    ) -> Buffer:
        """Writes how much each head matters, and returns V."""
        table, bins = self.actor.table, critic.num_bins
        critic_options(rows["unit"], table=table, bins=bins, out=rows["option"])
        if "in_use" in rows:
            ops.in_use(rows["option"], table=critic.table, out=rows["in_use"])
        value, scores, _ = critic.net.forward([x])
        chosen = critic.chosen(scores, rows.actions())
        gradient = None  # all advantages count in full
        if "q" in rows:
            critic.combine(value, chosen, x, out=rows["q"])
        if kind not in ("uniform", "range"):
            gradient = critic.q_gradient(x, None if kind == "state" else chosen)
        mask = rows.get("mask")
        if mask is not None and mask.width > table.total:  # without the tables behind the options
            mask = mask.columns(0, table.total)
        head_importance(
            scores, chosen, rows["probs"], mask, gradient, table=critic.table,
            kind=kind, out=rows["importance"],
        )  # fmt: skip
        return value

    def shares(self, rows: Rows) -> Buffer:
        """Each head's share of the credit at the greedy actions of `obs`, once weights are full."""
        assert self.branching is not None
        policy_sees, x = self.sight.policy(rows["obs"]), self.sight.critic(rows["obs"])
        self.actor.mode(policy_sees, rows.get("mask"), [rows["raw"], rows["unit"]])
        self.probs(rows)
        kind: Importance = "range" if self.importance == "uniform" else self.importance
        self._write_importance(self.branching, rows, x, kind)
        late = self._scratch("late", 1, 2)
        late.longs.fill_(1)
        full = {"span": 1.0, "floor": 0.0, "signed": kind == "signed"}
        credit_weights(rows["importance"], late, None, **full, out=rows["weight"])
        return rows["weight"]

    def _add_expected_mixture(
        self, critic: BranchingCritic, rows: Rows, x: Buffer, value: str
    ) -> None:
        """Adds to V what a mixer adds on average, so that it is the value of the policy."""
        weights = critic.mixture_weights(x)
        if weights is not None:
            _, scores, _ = critic.net.forward([x])
            more = self._scratch("more", rows.num_rows)
            kind = {"table": critic.table, **critic.bends}
            expected_mixture(scores, rows["probs"], weights, **kind, out=more)
            ops.add(rows[value], more, out=rows[value])


@operation(compiled=False)
def value_of_next(
    q: Tensor, next_value: Tensor, terminated: Tensor, truncated: Tensor, *, num_envs: int
) -> Tensor:
    """Q(s', a') of what was done next, (P, 1, B, 1), or V(s') where an episode or the rollout ends.

    Args:
        q: Of what was done in each row, (P, 1, B, 1).
        next_value: V(s'), (P, 1, B, 1).
        terminated: Where the task has ended, (P, 1, B, 1).
        truncated: Where the episode was cut off, (P, 1, B, 1).
        num_envs: Rows of a step.
    """
    later = torch.cat([q[..., num_envs:, :], next_value[..., -num_envs:, :]], dim=-2)
    return torch.where(terminated + truncated > 0.0, next_value, later)
