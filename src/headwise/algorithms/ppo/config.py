"""Proximal policy optimization over heads: its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from headwise.added import added
from headwise.algorithms.base import AlgorithmConfig, PerMember, Scheduled, Task, algorithms
from headwise.algorithms.inspect import inspector_named
from headwise.algorithms.ppo.learner import PPOLearner
from headwise.checks import check_counts
from headwise.errors import ConfigError
from headwise.ops import Activation
from headwise.ops.heads import Kind


@algorithms.register("ppo")
@dataclass(frozen=True, kw_only=True)
class PPO(AlgorithmConfig):
    """Proximal policy optimization."""

    name: ClassVar[str] = "ppo"
    needs: ClassVar[tuple[str, ...]] = ("policy", "critic")

    n_steps: int = 256
    """Steps of each environment between updates: with 16 environments 256 are 4096 transitions."""
    batch_size: int = 128
    """Rows of a gradient step."""
    n_epochs: int = 4
    """Passes over the rollout in an update."""
    clip_range: Scheduled = 0.2
    """How far a probability ratio may move from 1 before it stops paying; it may follow the run as
    the learning rate may."""
    gae_lambda: PerMember = 0.95
    """Decay of the trace: 0 is one step, 1 is the whole return."""
    ent_coef: PerMember = 0.01
    """Weight of the heads' summed entropy. The authors' package has 0.05, too much for numbers: the
    entropy of a Range is that of the Gaussian before tanh, and the widest is a coin toss between
    both ends."""
    vf_coef: float = 0.5
    """Weight of the squared error of the value."""
    clip_range_vf: float | None = None
    """How far a value may move from the old one before it stops counting; None does not clip. The
    loss is the larger of two means over a minibatch, of the value as it is and of the clipped one,
    as in the paper's package; PPO2 has the mean of the larger, SB3 the clipped one alone. It is for
    plain critics, not those of vdn and qplex."""
    max_grad_norm: float = 0.5
    """The longest gradient of a member."""
    ratio: Literal["auto", "per_head", "ranges_joint", "joint"] = "auto"
    """Clip each head's ratio, one of all Ranges, or the product; `auto`: as the factorization says,
    which is the product for ar and joint."""
    normalize_advantage: bool | Literal["rollout", "batch"] = "rollout"
    """Over what advantages are brought to mean 0 and standard deviation 1, all heads together: the
    rollout, each batch (True means that), or nothing (False)."""
    importance: Literal["auto", "uniform", "range", "range_slope", "grad", "signed", "state"] = (
        "auto"
    )
    """How a branching critic shares out credit. `auto`: as the factorization says, which is range
    for vdn and grad for qplex. `range` is the paper's rule for VDN-PPO and `signed` that for
    PPO-MIX, whose weights have no bound; `grad` is `signed` by size."""
    weight_place: Literal["inside", "outside"] = "inside"
    """Weight every residual of the trace (the paper), or the whole estimate by its own state."""
    anneal_share: float = 0.8
    """Share of the updates after which importance weights apply in full."""
    importance_floor: float = 0.0
    """Share of the credit that is always uniform."""
    critic_target: Literal["lambda", "one_step", "one_step_q"] = "lambda"
    """What a branching critic is regressed on: the lambda-return, as in the paper's package; the
    paper's own `r + gamma V(s')`; or `r + gamma Q(s', a')`, which the paper advises against, with
    what was done next, or V(s') where an episode or the rollout ends."""
    center_advantage: Literal["rollout", "batch"] = "rollout"
    """Center advantages under the policy that acted, or under the current one each time."""
    correct_mixture: bool = False
    """Add to V what a mixer adds on average, so that it is the value of the policy."""
    kl_coef: float = 0.0
    """First weight of an adaptive penalty on the divergence from the policy that acted."""
    kl_target: float = 0.1
    """The divergence that the penalty aims for."""
    mean_penalty: float = 0.0
    """Weight of squared means of Range heads beyond 4 in size; not for Beta distributions, which
    have shapes instead."""
    range_entropy: Literal["sum", "mean"] = "sum"
    """How the entropies of several Range heads count together."""
    range_kind: Kind = "squashed"
    """The distribution of a Range head."""
    policy_gain: float = 0.01
    """Gain of the policy's output layer at the start."""
    activation: Activation = "relu"
    """The policy's activation."""
    critic_activation: Activation = "tanh"
    """The critic's activation."""
    critic_net_arch: tuple[int, ...] | None = None
    """Widths of the critic's encoder; the policy's if not given."""
    critic_orthogonal: bool = True
    """Whether the critic begins orthogonal."""
    branch_width: int = 64
    """Width of the layer above the critic's outputs, for each of its halves; 0 leaves it out where
    the critic is a plain value."""
    offline_rows: int = 0
    """Rows of the past that the branching critic learns from instead of the rollout; 0 is none."""
    share_encoder: bool = added(False)
    """Whether policy and critic read images, entities or vectors by one encoder, or each by its
    own; networks that see observations as they are share nothing."""
    inspect: str | None = None
    """The name of an inspector that looks at every rollout's credit (`inspectors`)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("clip_range", 0.0, 10.0, open_low=True)
        self.require("gae_lambda", 0.0, 1.0)
        self.require("ent_coef", 0.0, 100.0)
        self.require("importance_floor", 0.0, 1.0)
        self.require("anneal_share", 0.0, 1.0)
        self.require("kl_coef", 0.0, 100.0)
        self.require("kl_target", 0.0, 100.0, open_low=True)
        self.require("vf_coef", 0.0, 1e3)
        self.require("mean_penalty", 0.0, 1e3)
        self.require("max_grad_norm", 0.0, 1e9, open_low=True)
        if self.mean_penalty and self.range_kind == "beta":
            raise ConfigError(
                "ppo setting 'mean_penalty' holds the mean of a Gaussian, and a Beta has shapes",
                got=f"mean_penalty={self.mean_penalty}, range_kind='beta'",
                allowed="mean_penalty=0, or range_kind 'squashed' or 'clipped'",
                fix="Leave mean_penalty out.",
            )
        if self.clip_range_vf is not None:
            self.require("clip_range_vf", 0.0, 1e9, open_low=True)
        if self.critic_target == "one_step_q" and self.offline_rows:
            raise ConfigError(
                "ppo's critic learns from rows of the past, which do not tell what was done next",
                got=f"critic_target='one_step_q', offline_rows={self.offline_rows}",
                allowed="critic_target='one_step_q' with offline_rows=0",
                fix="Leave one of them out.",
            )
        check_counts(self, "n_steps", "batch_size", "n_epochs")
        if self.normalize_advantage is True:
            object.__setattr__(self, "normalize_advantage", "batch")
        if self.share_encoder and self.offline_rows:
            raise ConfigError(
                "ppo's critic learns from the past, and its policy from the rollout: one encoder "
                "cannot do both",
                got=f"share_encoder=True, offline_rows={self.offline_rows}",
                allowed="share_encoder=False, or offline_rows=0",
            )
        if self.inspect is not None:
            inspector_named(self.inspect)

    @classmethod
    def small(cls, **settings: Any) -> Self:
        """Two passes over rollouts of a few rows."""
        return super().small(**{"n_steps": 8, "batch_size": 16, "n_epochs": 2} | settings)

    def build(self, task: Task) -> PPOLearner:
        """The learner."""
        return PPOLearner(self, task)
