"""Soft actor-critic over heads, with every factorization: discrete, continuous or both.

The factorization says what policy and critics look like (`factorizations/soft*.py`); the algorithm
is the same for all: twin critics on a soft target, an actor where there is one, and temperatures
that hold each head's entropy at its target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

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
from headwise.algorithms.off_policy import OffPolicyConfig
from headwise.algorithms.schedules import linear
from headwise.algorithms.temperature import Temperatures
from headwise.checks import check_counts
from headwise.factorizations.base import ActorGradient, Blueprint, offered
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.soft.base import twice
from headwise.nets import Activation
from headwise.population import (
    Adam,
    Clock,
    Draws,
    Initializer,
    Packed,
    Stream,
    held_constant,
    member_mean,
    member_sum,
    straight_gradients,
)

_BLOCK = 256  # of the kernels


@algorithms.register("sac")
@dataclass(frozen=True, kw_only=True)
class SAC(OffPolicyConfig):
    """Soft actor-critic."""

    name: ClassVar[str] = "sac"

    target_entropy: PerMember = 0.5
    """Entropy that Choice heads should have, as a fraction of the largest there is among legal
    options. Where good play is nearly deterministic 0.5 leaves no room for it: take 0.2, or let it
    fall to that."""
    target_entropy_end: PerMember | None = None
    """What the fraction becomes in the end; None leaves it as it is."""
    target_entropy_share: float = 1.0
    """Share of the run over which it does."""
    entropy_bonus: Literal["above_target", "whole"] = "above_target"
    """What a state is worth for its entropy: the temperature times what it has `above_target`, or
    times the `whole` of it, as in the paper. The whole is paid at every step for as long as an
    episode lasts: where rewards are small, to do nothing for long can pay more than they do."""
    per_head_temperature: bool = False
    """A temperature for every head, instead of one for all Choices and one for all Ranges; a joint
    action has one in any case."""
    first_temperature: float = 0.2
    """Where temperatures begin."""
    actor_lr_scale: float = 0.5
    """The actor's step size as a multiple of the critics'."""
    max_grad_norm: float = 1.0
    """The longest gradient of a member's actor, and of all its critics together."""
    actor_gradient: ActorGradient = "counterfactual"
    """How an actor learns its options (shared). `counterfactual` asks the critics for every option
    of one head of each state, the other heads as drawn: unbiased, as many evaluations as a head has
    options, 16 on average at most. `straight_through` follows the critics' slope by relaxed
    options, as in the paper: one evaluation, but biased, and often it does not learn."""
    gumbel_start: float = 2.0
    """Softness of relaxed options at the start (shared, straight_through)."""
    gumbel_decay: float = 0.9995
    """What it is multiplied with at each update."""
    gumbel_floor: float = 0.01
    """The least it becomes."""
    activation: Activation = "relu"
    """The activation of actor and critics. The authors' package has tanh."""
    branch_width: int = 32
    """Width of each half of the layer before a branching critic's outputs."""
    policy_gain: float = 2.0**0.5
    """Gain of the actor's output layer at the start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("target_entropy", "target_entropy_share"):
            self.require(name, 0.0, 1.0)
        if self.target_entropy_end is not None:
            self.require("target_entropy_end", 0.0, 1.0)
        self.require("first_temperature", 0.0, 1e3, open_low=True)
        self.require("actor_lr_scale", 0.0, 100.0)
        self.require("max_grad_norm", 0.0, 1e9, open_low=True)
        for name in ("gumbel_start", "gumbel_decay", "gumbel_floor"):
            self.require(name, 0.0, 1e3, open_low=True)
        check_counts(self, "branch_width")

    def build(self, task: Task) -> SACLearner:
        """The learner."""
        return SACLearner(self, task)


class SACLearner(Algorithm):
    """A population of SAC learners."""

    def __init__(self, config: SAC, task: Task) -> None:
        self.config = config
        kind = task.factorization
        kind.check(task.spec)
        self.layout = Layout(task.spec, task.device)
        blueprint = Blueprint(
            layout=self.layout,
            obs_size=task.obs_size,
            init=Initializer(task.keys),
            hidden=config.hidden,
            activation=config.activation,
            branch_width=config.branch_width,
            state_std=True,
            log_std_bounds=(-5.0, 1.0),
            policy_gain=config.policy_gain,
            actor_gradient=config.actor_gradient,
        )
        self.soft = offered(kind, "soft", config.name)(blueprint)
        self.critic = self.soft.make_critic()
        self.target = self.soft.make_critic()
        self._packed, self._packed_target = Packed(self.critic), Packed(self.target)
        lr = config.member_values("lr", task.keys)
        self.critic_optimiser = Adam(self._packed, lr, max_norm=config.max_grad_norm)
        self.alive = self.critic_optimiser.alive
        """Which members have not diverged, (P,), in anything of theirs."""
        self.actor_optimiser: Adam | None = None
        if self.soft.actor is not None:
            self.actor_optimiser = Adam(
                Packed(self.soft.actor),
                lr * config.actor_lr_scale,
                max_norm=config.max_grad_norm,
                alive=self.alive,
            )
        self.temperatures = Temperatures(
            self.layout,
            task.keys,
            config.first_temperature,
            per_head=config.per_head_temperature and self.soft.tells_heads_apart,
            lr=lr,
            most=self.soft.largest_entropy(None),
            alive=self.alive,
        )
        self.plan = config.replay_plan()
        self.num_uniforms = self.soft.num_uniforms
        self.updates = Clock(task.device)
        self._num_updates = max(task.total_steps * config.updates_per_step, 1.0)
        self._fraction = config.member_values("target_entropy", task.keys)
        end = "target_entropy" if config.target_entropy_end is None else "target_entropy_end"
        self._fraction_end = config.member_values(end, task.keys)
        relaxes = self.soft.actor_has_options and config.actor_gradient == "straight_through"
        self._softness = None if relaxes else torch.ones((), device=task.device)
        self._descent = torch.empty(0, device=task.device)

    @property
    def fraction(self) -> Tensor:
        """The share of the largest entropy that Choice heads should have now, (P,)."""
        if self.config.target_entropy_end is None:
            return self._fraction
        span = self.config.target_entropy_share * self._num_updates
        return linear(self._fraction, self._fraction_end, self.updates.now, span)

    # --- acting ---------------------------------------------------------------------------------

    @torch.no_grad()
    def act(self, obs: Tensor, draws: Draws, legal: Tensor | None = None) -> Acted:
        """Actions drawn from the policy."""
        uniform = draws.uniform(Stream.ACT, obs.shape[-2], self.soft.num_uniforms)
        action = self.soft.sample(self.critic, obs, uniform, self.temperatures(), legal)
        return Acted(action, {})

    @torch.no_grad()
    def policy(
        self, obs: Tensor, uniform: Tensor | None = None, legal: Tensor | None = None
    ) -> Tensor:
        """The mode of the policy, or a draw from it."""
        if uniform is None:
            return self.soft.mode(self.critic, obs, legal)
        return self.soft.sample(self.critic, obs, uniform, self.temperatures(), legal)

    # --- learning -------------------------------------------------------------------------------

    def update(self, batch: RolloutBatch | ReplayBatch, draws: Draws) -> LazyMetrics:
        """One gradient step of critics, actor and temperatures on rows drawn from the past."""
        assert isinstance(batch, ReplayBatch)
        rows = batch.reward.shape[-1]
        alpha = self.temperatures()
        with torch.no_grad():
            uniform = draws.uniform(Stream.TARGET, rows, self.soft.num_uniforms)
            following = self.soft.soft_value(
                self.target, batch.next_obs, uniform, alpha, batch.next_legal
            )
            if self.config.entropy_bonus == "above_target":
                following = following - self._expected_bonus(alpha, batch, following.shape[-1])
        with straight_gradients():
            predicted = self.soft.predict(self.critic, batch.obs, batch.action, batch.legal)
        # The loss is the squared error: the sum over critics and columns, the mean over rows.
        error, slope = self._errors(predicted.detach(), following, batch)
        torch.autograd.backward(predicted, slope)
        self.critic_optimiser.step(self._packed_target, self.config.tau)

        noise = draws.uniform(Stream.ACTOR, rows, self.soft.num_noise)
        of_the_rest = self._improve(batch, noise, alpha)
        self.updates.advance()

        def metrics() -> Metrics:
            return of_the_rest() | {
                "train/critic_loss": member_sum(error.square()) / rows,
                "train/q_values": member_mean(predicted.detach()),
                "train/grad_norm": self.critic_optimiser.norm.clone(),
            }

        return metrics

    def _expected_bonus(self, alpha: Tensor, batch: ReplayBatch, columns: int) -> Tensor:
        """What entropy is worth where it meets its target, (P, 1 or B, G)."""
        target = self.temperatures.target(self.fraction, self._most(batch.next_legal))
        if target.dim() == alpha.dim():  # the same in every state
            target = target.unsqueeze(-2)
        worth = alpha.unsqueeze(-2) * target
        if columns == self.layout.num_heads:  # each has a value of its own, paid as if in use
            return worth
        if self.layout.is_conditional and self.soft.tells_heads_apart:
            # A head that is seldom in use adds as little.
            worth = worth * self.layout.active(batch.action).mean(-2, keepdim=True)
        return worth.sum(-1, keepdim=True)

    def _most(self, legal: Tensor | None) -> Tensor | None:
        """The largest entropies there are, (P, B, H), or None where they are always the same."""
        return None if legal is None else self.soft.largest_entropy(legal)

    def _errors(
        self, predicted: Tensor, following: Tensor, batch: ReplayBatch
    ) -> tuple[Tensor, Tensor]:
        """What both critics are wrong by, (P, 2, B, G), and the slope of the loss there."""
        rows, columns = following.shape[-2:]
        idle = self.layout.is_conditional and columns == self.layout.num_heads
        if predicted.device.type == "cuda" and not idle:
            return _td_errors(predicted, following, batch.reward, batch.discount)
        target = torch.addcmul(batch.reward.unsqueeze(-1), batch.discount.unsqueeze(-1), following)
        error = predicted - target.unsqueeze(-3)
        if idle:  # a head that is not in use has nothing to learn
            error = error * twice(self.layout.active(batch.action))
        return error, error * (2.0 / rows)

    def _improve(self, batch: ReplayBatch, noise: Tensor, alpha: Tensor) -> LazyMetrics:
        """A step of the actor, where there is one, and of the temperatures."""
        with straight_gradients(), held_constant(self._packed):
            actor = self.soft.actor_loss(
                self.critic, batch.obs, noise, alpha, self._relaxation(), batch.legal
            )
        if actor.gain is not None and self.actor_optimiser is not None:
            if self._descent.shape != actor.gain.shape:
                self._descent = torch.full_like(actor.gain, -1.0) / actor.gain.shape[-2]
            torch.autograd.backward(actor.gain, self._descent)  # that of the loss
            self.actor_optimiser.step()
        of_temperatures = self.temperatures.update(
            actor.entropy, self.fraction, actor.in_use, self._most(batch.legal)
        )

        def metrics() -> Metrics:
            loss = actor.loss
            of_actor = {} if loss is None else {"train/actor_loss": loss.detach()}
            return of_actor | of_temperatures()

        return metrics

    def _relaxation(self) -> Tensor:
        """How soft relaxed options are by now."""
        if self._softness is not None:  # nothing is relaxed
            return self._softness
        config, now = self.config, self.updates.now
        if isinstance(now, Tensor) and now.device.type == "cuda":
            return _decayed(now, config.gumbel_start, config.gumbel_decay, config.gumbel_floor)
        softness = config.gumbel_start * config.gumbel_decay**now
        gumbel = torch.as_tensor(softness, dtype=torch.float32, device=self._fraction.device)
        return gumbel.clamp_min(config.gumbel_floor)

    # --- keeping --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that later updates depend on."""
        state = {f"critic.{n}": x for n, x in self.critic_optimiser.state_dict().items()}
        state |= {f"alpha.{n}": x for n, x in self.temperatures.optimiser.state_dict().items()}
        if self.actor_optimiser is not None:
            state |= {f"actor.{n}": x for n, x in self.actor_optimiser.state_dict().items()}
        state["target"] = self._packed_target.rows(self._packed_target.values)
        state["updates"] = torch.full_like(self._fraction, self.updates.read(), dtype=torch.int64)
        return state

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes back to a saved state."""

        def part(prefix: str) -> dict[str, Tensor]:
            return {n.removeprefix(prefix): x for n, x in state.items() if n.startswith(prefix)}

        self.critic_optimiser.load_state_dict(part("critic."))
        self.temperatures.optimiser.load_state_dict(part("alpha."))
        if self.actor_optimiser is not None:
            self.actor_optimiser.load_state_dict(part("actor."))
        for name, alive in state.items():  # dead in one is dead; once each kept its own account
            if name.endswith(".alive"):
                self.alive.logical_and_(alive.to(self.alive.device))
        self._packed_target.load_rows(self._packed_target.values, state["target"])
        self.updates.set(int(state["updates"].max()))


def _td_errors(
    predicted: Tensor, following: Tensor, reward: Tensor, discount: Tensor
) -> tuple[Tensor, Tensor]:
    """Predictions (P, 2, B, G) minus targets, and twice that divided by the rows, as a kernel."""
    from headwise.algorithms.kernels.sac import td_error

    rows, columns = following.shape[-2:]
    error, slope = torch.empty((2, *predicted.shape), device=predicted.device).unbind(0)
    td_error[(-(-error.numel() // _BLOCK),)](
        predicted.contiguous(), following.contiguous(), reward.contiguous(), discount.contiguous(),
        error, slope, error.numel(), rows, columns, 2.0 / rows, BLOCK=_BLOCK,
    )  # fmt: skip
    return error, slope


def _decayed(count: Tensor, start: float, decay: float, floor: float) -> Tensor:
    """Start * decay^count, at least the floor, as a kernel."""
    from headwise.algorithms.kernels.sac import relaxation

    out = torch.empty((), device=count.device)
    relaxation[(1,)](count, out, float(start), math.log(decay), float(floor))
    return out
