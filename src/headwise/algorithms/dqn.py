"""Deep Q-learning over heads, with every factorization. Ranges are cut into bins.

With max-centred advantages the value of the greedy action is V for every factorization that shares
it, so factorizations differ only in what is regressed on the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from headwise.algorithms.base import (
    Acted,
    Metrics,
    PerMember,
    ReplayBatch,
    Report,
    RolloutBatch,
    Task,
    algorithms,
)
from headwise.algorithms.off_policy import OffPolicyConfig
from headwise.algorithms.schedules import linear
from headwise.errors import ConfigError
from headwise.factorizations.base import Blueprint, offered
from headwise.factorizations.heads import chosen, pick_options
from headwise.factorizations.layout import NEVER, Layout
from headwise.nets import Activation
from headwise.population import (
    Adam,
    Clock,
    Draws,
    Initializer,
    Packed,
    Stream,
    along,
    member_mean,
    member_sum,
    straight_gradients,
)


@algorithms.register("dqn")
@dataclass(frozen=True, kw_only=True)
class DQN(OffPolicyConfig):
    """Deep Q-learning with dueling, max-centred branches."""

    name: ClassVar[str] = "dqn"

    bins: int | dict[str, int] | None = 11
    """Bins of a Range head: one number, or numbers by head."""
    epsilon: PerMember = 0.1
    """How often a head takes an option at random, in the end."""
    epsilon_start: PerMember = 0.1
    """How often in the beginning."""
    epsilon_share: float = 0.1
    """Share of the run over which the one becomes the other."""
    double_q: bool = False
    """Let the online network choose the next action, and the target network judge it."""
    loss: Literal["squared", "huber"] = "squared"
    """The loss of an error."""
    temperature: float = 0.0
    """Above 0: soft values, and a policy that is a softmax of the advantages."""
    munchausen: float = 0.0
    """Weight of the scaled log-policy that is added to the reward; needs a temperature."""
    munchausen_floor: float = -1.0
    """The least that the log-policy may add."""
    max_grad_norm: float = 10.0
    """The longest gradient of a member."""
    activation: Activation = "relu"
    """The encoder's activation."""
    branch_width: int = 128
    """Width of each half of the layer above the outputs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epsilon", "epsilon_start", "epsilon_share", "munchausen"):
            self.require(name, 0.0, 1.0)
        self.require("temperature", 0.0, 1e3)
        self.require("max_grad_norm", 0.0, 1e9, open_low=True)
        if self.munchausen > 0.0 and self.temperature == 0.0:
            raise ConfigError(
                "dqn setting 'munchausen' needs a temperature", got="temperature 0", fix="Try 0.03."
            )

    def build(self, task: Task) -> DQNLearner:
        """The learner."""
        return DQNLearner(self, task)


class DQNLearner:
    """A population of DQN learners."""

    def __init__(self, config: DQN, task: Task) -> None:
        self.config = config
        kind = task.factorization
        if task.spec.num_ranges:
            raise ConfigError(
                "dqn chooses among options, and some heads are Ranges",
                got=str(task.spec),
                fix="Give a number of bins: bins=11.",
            )
        kind.check(task.spec)
        self.layout = Layout(task.spec, task.device)
        make = offered(kind, "value", config.name)
        self.online: Any = make(self._blueprint(task))
        self.target: Any = make(self._blueprint(task))
        if config.temperature and getattr(self.online, "soft_heads", None) is None:
            raise ConfigError(
                f"the factorization {kind.name!r} has no soft values",
                got=f"temperature {config.temperature}",
                allowed="temperature 0, or one of independent, shared, vdn, joint",
            )
        self._packed = Packed(self.online)
        self._packed_target = Packed(self.target)
        lr = config.member_values("lr", task.keys)
        self.optimiser = Adam(self._packed, lr, max_norm=config.max_grad_norm)
        self.alive = self.optimiser.alive
        self.plan = config.replay_plan()
        self.steps = Clock(task.device)
        """Environment steps that each member has taken, for the schedule of epsilon."""
        self._total_steps, self._num_slots = task.total_steps, task.num_slots
        self._epsilon_start = config.member_values("epsilon_start", task.keys)
        self._epsilon = config.member_values("epsilon", task.keys)
        self._sums_columns = kind.name == "independent"

    def _blueprint(self, task: Task) -> Blueprint:
        # Both networks are built from the same numbers, so the target begins as a copy.
        return Blueprint(
            layout=self.layout,
            obs_size=task.obs_size,
            init=Initializer(task.keys),
            hidden=self.config.hidden,
            activation=self.config.activation,
            branch_width=self.config.branch_width,
        )

    @property
    def epsilon(self) -> Tensor:
        """How often a head takes an option at random now, (P,)."""
        span = self.config.epsilon_share * self._total_steps
        return linear(self._epsilon_start, self._epsilon, self.steps.now, span)

    # --- acting ---------------------------------------------------------------------------------

    @property
    def num_uniforms(self) -> int:
        """None: there is no policy to draw from, only the best action."""
        return 0

    @torch.no_grad()
    def act(self, obs: Tensor, draws: Draws, legal: Tensor | None = None) -> Acted:
        """The best action, but each head of each slot by chance something else."""
        best = self.online.best(obs, legal)
        coin, option = draws.uniform(Stream.EXPLORE, 2, *best.shape[-2:]).unbind(-3)
        anything = pick_options(self._equal_chances(best, legal), option)
        explores = coin < along(self.epsilon, coin)
        self.steps.advance(self._num_slots)
        return Acted(torch.where(explores, anything, best), {})

    @torch.no_grad()
    def policy(
        self, obs: Tensor, uniform: Tensor | None = None, legal: Tensor | None = None
    ) -> Tensor:
        """The best action; there is no other policy to draw from."""
        best: Tensor = self.online.best(obs, legal)
        return best

    def _equal_chances(self, action: Tensor, legal: Tensor | None) -> Tensor:
        exists = self.layout.mask if legal is None else self.layout.mask & legal
        log_probs = torch.where(exists, 0.0, NEVER).log_softmax(-1)
        return log_probs.expand(*action.shape, log_probs.shape[-1])

    # --- learning -------------------------------------------------------------------------------

    def update(self, batch: RolloutBatch | ReplayBatch, draws: Draws) -> Report:
        """One gradient step on rows drawn from the past."""
        assert isinstance(batch, ReplayBatch)
        target = self._target(batch)
        with straight_gradients():
            predicted = self.online.predict(batch.obs, batch.action, batch.legal)
        error = predicted.detach() - target
        weight = self._weights(batch, error)
        # The slope of the squared error is twice the error; Huber's never exceeds one.
        squared = self.config.loss == "squared"
        slope = 2.0 * error if squared else error.clamp(-1.0, 1.0)
        torch.autograd.backward(predicted, slope * weight)
        self.optimiser.step()
        self._packed_target.move_towards(self._packed, self.config.tau)

        def report() -> Metrics:
            size = error.abs()
            loss = error.square() if squared else torch.where(size < 1.0, 0.5 * size**2, size - 0.5)
            return {
                "train/loss": member_sum(loss * weight),
                "train/td_error": member_mean(size),
                "train/q_values": member_mean(predicted.detach()),
                "train/grad_norm": self.optimiser.norm.clone(),
                "rollout/exploration_rate": self.epsilon,
            }

        return report

    def _weights(self, batch: ReplayBatch, error: Tensor) -> Tensor | float:
        """What each error (P, B, G) counts in a member's loss, which is a mean over rows."""
        rows, columns = error.shape[-2:]
        all_columns = columns if self._sums_columns else 1
        if not self.layout.is_conditional or columns != self.layout.num_heads:
            return all_columns / (rows * columns)
        in_use = self.layout.active(batch.action)  # a head not in use has nothing to learn
        return in_use * (all_columns / along(member_sum(in_use).clamp_min(1.0), in_use))

    @torch.no_grad()
    def _target(self, batch: ReplayBatch) -> Tensor:
        """What the predictions are regressed on, (P, B, G)."""
        reward = batch.reward.unsqueeze(-1)
        if self.config.temperature:
            _, following = self.target.soft_heads(
                batch.next_obs, self.config.temperature, batch.next_legal
            )
            reward = reward + self._munchausen(batch)
        elif self.config.double_q:
            best = self.online.best(batch.next_obs, batch.next_legal)
            following = self.target.predict(batch.next_obs, best, batch.next_legal)
        else:
            following = self.target.best_value(batch.next_obs, batch.next_legal)
        return torch.addcmul(reward, batch.discount.unsqueeze(-1), following)

    def _munchausen(self, batch: ReplayBatch) -> Tensor:
        """The scaled log-policy of the action taken, (P, B, G): a bonus for being sure."""
        if not self.config.munchausen:
            return torch.zeros_like(batch.reward).unsqueeze(-1)
        temperature = self.config.temperature
        log_policy, columns = self.target.soft_heads(batch.obs, temperature, batch.legal)
        options = self.online.options(batch.action)
        bonus = temperature * chosen(log_policy, options)
        if columns.shape[-1] == 1:
            bonus = bonus.sum(-1, keepdim=True)
        return self.config.munchausen * bonus.clamp(self.config.munchausen_floor, 0.0)

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that later updates depend on."""
        steps = torch.full_like(self._epsilon, self.steps.read(), dtype=torch.int64)
        target = self._packed_target.rows(self._packed_target.values)
        return self.optimiser.state_dict() | {"target": target, "steps": steps}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        self.optimiser.load_state_dict(state)
        self._packed_target.load_rows(self._packed_target.values, state["target"])
        self.steps.set(int(state["steps"].max()))
