"""The settings of proximal policy optimization (PPO)."""

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
    """Proximal policy optimization, for discrete, continuous and hybrid actions.

    Each head has its own clipped probability ratio, unless `ratio` says otherwise.
    """

    name: ClassVar[str] = "ppo"
    needs: ClassVar[tuple[str, ...]] = ("policy", "critic")

    n_steps: int = 256
    """Steps of each environment in a rollout: with 16 environments 256 are 4096 transitions."""
    batch_size: int = 128
    """Transitions in a minibatch, for each seed."""
    n_epochs: int = 4
    """Epochs over a rollout in an update."""
    clip_range: Scheduled = 0.2
    """Clipping of the probability ratio to 1 - clip_range and 1 + clip_range; a number or a
    schedule, as for the learning rate."""
    gae_lambda: PerMember = 0.95
    """Lambda of generalized advantage estimation: 0 is one-step, 1 is Monte Carlo."""
    ent_coef: PerMember = 0.01
    """Entropy coefficient, of the sum over heads. The 0.05 of the paper's package is too much for
    continuous heads: their entropy is that of the Gaussian before tanh, and the widest Gaussian
    puts nearly all actions at both bounds."""
    vf_coef: float = 0.5
    """Coefficient of the value loss."""
    clip_range_vf: float | None = None
    """Clipping of the value around its old estimate; None does not clip. The loss is the larger of
    two means over a minibatch, unclipped and clipped, as in the paper's package; PPO2 has the mean
    of the larger, SB3 the clipped one alone. Not for the branching critics of vdn and qplex."""
    max_grad_norm: float = 0.5
    """Maximum gradient norm, of each seed."""
    ratio: Literal["auto", "per_head", "ranges_joint", "joint"] = "auto"
    """Which probability ratios are clipped: each head's (`per_head`), one of all continuous heads
    beside those of discrete ones (`ranges_joint`), or that of the whole action (`joint`). `auto`:
    the factorization's, which is joint for ar and joint, and per_head for others."""
    normalize_advantage: bool | Literal["rollout", "batch"] = "rollout"
    """Normalize advantages of all heads to mean 0 and standard deviation 1: over the rollout, over
    each minibatch (`batch`, or True), or not at all (False)."""
    importance: Literal["auto", "uniform", "range", "range_slope", "grad", "signed", "state"] = (
        "auto"
    )
    """How a branching critic weights the advantages of heads. `auto`: the factorization's, which is
    range for vdn and grad for qplex. `range` is the paper's rule for VDN-PPO and `signed` that for
    PPO-MIX, whose weights are unbounded; `grad` takes their absolute values."""
    weight_place: Literal["inside", "outside"] = "inside"
    """Whether importance weights multiply every TD residual of the advantage (`inside`, the paper),
    or the whole advantage by the weight of its state (`outside`)."""
    anneal_share: float = 0.8
    """Fraction of the updates after which importance weights apply in full; before, they are mixed
    with uniform ones."""
    importance_floor: float = 0.0
    """Fraction of the importance weights that is always uniform."""
    critic_target: Literal["lambda", "one_step", "one_step_q"] = "lambda"
    """Regression target of a branching critic: the lambda-return, as in the paper's package;
    `r + gamma V(s')`, as the paper writes; or `r + gamma Q(s', a')` of the next action taken, which
    the paper advises against (V(s') where an episode or the rollout ends)."""
    center_advantage: Literal["rollout", "batch"] = "rollout"
    """Policy under which a branching critic's advantages have mean 0: the one that collected the
    `rollout`, or the current one at each `batch`."""
    correct_mixture: bool = False
    """Add the mixer's mean (to second order) to V, so that V is the value of the policy (qplex)."""
    kl_coef: float = 0.0
    """Initial coefficient of an adaptive penalty on the KL divergence from the policy that
    collected the rollout; 0 has none."""
    kl_target: float = 0.1
    """KL divergence that the coefficient of the penalty is adapted to."""
    mean_penalty: float = 0.0
    """Coefficient of a penalty on squared means of continuous heads beyond 4 in absolute value; not
    for Beta distributions, which have no mean parameter."""
    range_entropy: Literal["sum", "mean"] = "sum"
    """Whether the entropies of continuous heads are summed or averaged."""
    range_kind: Kind = "squashed"
    """Distribution of continuous heads: a tanh-squashed Gaussian, a clipped Gaussian, or a Beta."""
    policy_gain: float = 0.01
    """Gain of the orthogonal initialization of the policy's output layer."""
    activation: Activation = "relu"
    """Activation of the policy's hidden layers."""
    critic_activation: Activation = "tanh"
    """Activation of the critic's hidden layers."""
    critic_net_arch: tuple[int, ...] | None = None
    """Widths of the critic's hidden layers; `net_arch` if not given."""
    critic_orthogonal: bool = True
    """Whether the critic's weights are initialized orthogonally."""
    branch_width: int = 64
    """Width of the critic's last hidden layer, for the value and for the advantages of a branching
    critic; a plain critic may do without it (0)."""
    offline_rows: int = 0
    """Transitions of past rollouts that the branching critic is trained on instead of the last
    rollout; 0 is off."""
    share_encoder: bool = added(False)
    """Whether policy and critic share one encoder of images, entities or vectors, or have their
    own; without an encoder nothing is shared."""
    inspect: str | None = None
    """Name of an inspector that adds metrics of the credit assignment at every rollout
    (`headwise.algorithms.inspect`)."""

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
