"""Deep Q-learning over heads, with every factorization. Ranges are cut into bins.

With max-centred advantages the value of the greedy action is V for every factorization that shares
it, so factorizations differ only in what is regressed on the target. Plain networks have no V: the
value of the greedy action is the sum of the heads' best, or each head's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from headwise.added import added
from headwise.algorithms.base import (
    Acted,
    Algorithm,
    LazyMetrics,
    Metrics,
    PerMember,
    ReplayBatch,
    RolloutBatch,
    Task,
    algorithms,
)
from headwise.algorithms.exploring import Exploring
from headwise.algorithms.losses.td_error import TDError
from headwise.algorithms.off_policy import OffPolicyConfig
from headwise.checks import check_counts
from headwise.errors import ConfigError
from headwise.factorizations.base import (
    Blueprint,
    Factorization,
    SoftValue,
    factorizations,
    offered,
)
from headwise.factorizations.parts.heads import chosen
from headwise.factorizations.parts.layout import Layout
from headwise.nets import Activation
from headwise.population import (
    Adam,
    Draws,
    Initializer,
    Packed,
    Stream,
    straight_gradients,
)


@algorithms.register("dqn")
@dataclass(frozen=True, kw_only=True)
class DQN(OffPolicyConfig):
    """Deep Q-learning over options, with dueling networks unless they are to be plain."""

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
    """Above 0 a target is the soft value of the next state: that of a policy that is a softmax of
    what options are worth, with its entropy. Acting is by the best option in any case."""
    munchausen: float = 0.0
    """Weight of the scaled log-policy that is added to the reward; needs a temperature."""
    munchausen_floor: float = -1.0
    """The least that the log-policy may add."""
    max_grad_norm: float = 10.0
    """The longest gradient of a member."""
    activation: Activation = "relu"
    """The encoder's activation."""
    dueling: bool = added(True)
    """Whether networks learn a state's value and max-centred advantages, with one more layer above
    the encoder, or a plain number for each option right above it (not for `qplex` and `ar`)."""
    branch_width: int = 128
    """Width of each half of the layer before a dueling network's outputs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epsilon", "epsilon_start", "epsilon_share", "munchausen"):
            self.require(name, 0.0, 1.0)
        self.require("temperature", 0.0, 1e3)
        self.require("max_grad_norm", 0.0, 1e9, open_low=True)
        check_counts(self, "branch_width")
        if self.munchausen > 0.0 and self.temperature == 0.0:
            raise ConfigError(
                "dqn setting 'munchausen' needs a temperature", got="temperature 0", fix="Try 0.03."
            )

    def build(self, task: Task) -> DQNLearner:
        """The learner."""
        return DQNLearner(self, task)


class DQNLearner(Algorithm):
    """A population of DQN learners."""

    num_uniforms = 0  # there is no policy to draw from, only the best action

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
        _check_asked_for(config, kind)
        self.layout = Layout(task.spec, task.device)
        make = offered(kind, "value", config.name)
        self.online = make(self._blueprint(task))
        self.target = make(self._blueprint(task))
        self._soft_target: SoftValue | None = None
        """The target network, where targets are soft values."""
        if config.temperature:
            assert isinstance(self.target, SoftValue), "what `has_soft_heads` claims"
            self._soft_target = self.target
        self._packed = Packed(self.online)
        self._packed_target = Packed(self.target)
        lr = config.member_values("lr", task.keys)
        self.optimiser = Adam(self._packed, lr, max_norm=config.max_grad_norm)
        self.alive = self.optimiser.alive
        self.plan = config.replay_plan()
        self._num_slots = task.num_slots
        self.exploring = Exploring(
            self.layout,
            config.member_values("epsilon_start", task.keys),
            config.member_values("epsilon", task.keys),
            config.epsilon_share * task.total_steps,
        )
        self._sums_columns = kind.sums_head_losses

    def _blueprint(self, task: Task) -> Blueprint:
        # Both networks are built from the same numbers, so the target begins as a copy.
        return Blueprint(
            layout=self.layout,
            obs_size=task.obs_size,
            init=Initializer(task.keys),
            hidden=self.config.hidden,
            activation=self.config.activation,
            branch_width=self.config.branch_width,
            dueling=self.config.dueling,
        )

    @property
    def epsilon(self) -> Tensor:
        """How often a head takes an option at random now, (P,)."""
        return self.exploring.epsilon

    # --- acting ---------------------------------------------------------------------------------

    @torch.no_grad()
    def act(self, obs: Tensor, draws: Draws, legal: Tensor | None = None) -> Acted:
        """The best action, but each head of each slot by chance something else."""
        best = self.online.best(obs, legal)
        uniform = draws.uniform(Stream.EXPLORE, 2, *best.shape[-2:])
        action = self.exploring.choose(best, uniform, legal)
        self.exploring.steps.advance(self._num_slots)
        return Acted(action, {})

    @torch.no_grad()
    def policy(
        self, obs: Tensor, uniform: Tensor | None = None, legal: Tensor | None = None
    ) -> Tensor:
        """The best action; there is no other policy to draw from."""
        return self.online.best(obs, legal)

    # --- learning -------------------------------------------------------------------------------

    def update(self, batch: RolloutBatch | ReplayBatch, draws: Draws) -> LazyMetrics:
        """One gradient step on rows drawn from the past."""
        assert isinstance(batch, ReplayBatch)
        reward, following = self._target(batch)
        with straight_gradients():
            predicted = self.online.predict(batch.obs, batch.action, batch.legal)
        scale, in_use = self._weights(batch, predicted)
        error = TDError(
            predicted.detach(), reward, batch.discount.unsqueeze(-1), following, scale, in_use,
            huber=self.config.loss == "huber",
        )  # fmt: skip
        torch.autograd.backward(predicted, error.slope())
        self.optimiser.step(self._packed_target, self.config.tau)

        def metrics() -> Metrics:
            return error.metrics() | {
                "train/grad_norm": self.optimiser.norm.clone(),
                "rollout/exploration_rate": self.epsilon,
            }

        return metrics

    def _weights(self, batch: ReplayBatch, predicted: Tensor) -> tuple[float, Tensor | None]:
        """What each error (P, B, G) counts in a member's loss, which is a mean over rows."""
        rows, columns = predicted.shape[-2:]
        all_columns = columns if self._sums_columns else 1
        if not self.layout.is_conditional or columns != self.layout.num_heads:
            return all_columns / (rows * columns), None
        return all_columns, self.layout.active(batch.action)

    @torch.no_grad()
    def _target(self, batch: ReplayBatch) -> tuple[Tensor, Tensor]:
        """Rewards (P, B, 1 or G), and the values (P, B, G) that follow: together the target."""
        reward = batch.reward.unsqueeze(-1)
        if self._soft_target is not None:
            _, following = self._soft_target.soft_heads(
                batch.next_obs, self.config.temperature, batch.next_legal
            )
            reward = reward + self._munchausen(self._soft_target, batch)
        elif self.config.double_q:
            best = self.online.best(batch.next_obs, batch.next_legal)
            following = self.target.predict(batch.next_obs, best, batch.next_legal)
        else:
            following = self.target.best_value(batch.next_obs, batch.next_legal)
        return reward, following

    def _munchausen(self, target: SoftValue, batch: ReplayBatch) -> Tensor:
        """The scaled log-policy of the action taken, (P, B, G): a bonus for being sure."""
        if not self.config.munchausen:
            return torch.zeros_like(batch.reward).unsqueeze(-1)
        temperature = self.config.temperature
        log_policy, columns = target.soft_heads(batch.obs, temperature, batch.legal)
        options = target.options(batch.action)
        bonus = temperature * chosen(log_policy, options)
        if bonus.shape[-1] == self.layout.num_heads:  # a joint action is one column, always in use
            bonus = self.layout.used(bonus, batch.action)
        if columns.shape[-1] == 1:
            bonus = bonus.sum(-1, keepdim=True)
        return self.config.munchausen * bonus.clamp(self.config.munchausen_floor, 0.0)

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that later updates depend on."""
        steps = torch.full_like(self.alive, self.exploring.steps.read(), dtype=torch.int64)
        target = self._packed_target.rows(self._packed_target.values)
        return self.optimiser.state_dict() | {"target": target, "steps": steps}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""
        self.optimiser.load_state_dict(state)
        self._packed_target.load_rows(self._packed_target.values, state["target"])
        self.exploring.steps.set(int(state["steps"].max()))


def _check_asked_for(config: DQN, kind: Factorization) -> None:
    """Refuses settings that ask for a form of the value which the factorization does not have."""
    if config.temperature and not kind.has_soft_heads:
        able = [name for name, other in factorizations.items() if other.has_soft_heads]
        raise ConfigError(
            f"the factorization {kind.name!r} has no soft values",
            got=f"temperature {config.temperature}",
            allowed=f"temperature 0, or one of {', '.join(able)}",
        )
    if not config.dueling and not kind.has_plain_value:
        able = [name for name, other in factorizations.items() if other.has_plain_value]
        raise ConfigError(
            f"the factorization {kind.name!r} is made of a state's value and advantages",
            got="dueling=False",
            allowed=f"dueling=True, or one of {', '.join(able)}",
        )
