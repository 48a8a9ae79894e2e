"""The settings of soft actor-critic (SAC)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from headwise.added import added
from headwise.algorithms.base import PerMember, Task, algorithms
from headwise.algorithms.off_policy import OffPolicyConfig
from headwise.algorithms.sac.learner import SACLearner, begins_at
from headwise.checks import check_counts
from headwise.errors import ConfigError
from headwise.ops import Activation

_LARGEST_ENT_COEF = 1e3


@algorithms.register("sac")
@dataclass(frozen=True, kw_only=True)
class SAC(OffPolicyConfig):
    """Soft actor-critic, for discrete, continuous and hybrid actions.

    Two critics are trained on the soft value of the next state, and the minimum of both counts.
    """

    name: ClassVar[str] = "sac"
    needs: ClassVar[tuple[str, ...]] = ("twins",)

    target_entropy: PerMember = 0.5
    """Target entropy of discrete heads, as a fraction of the entropy of the uniform policy over
    legal actions. Where good policies are nearly deterministic 0.5 is too much: use 0.2, or decay
    to it by `target_entropy_end`. The target of a continuous head is -1."""
    target_entropy_end: PerMember | None = None
    """Final value of `target_entropy`; None keeps it constant."""
    target_entropy_share: float = 1.0
    """Fraction of the run over which `target_entropy` reaches its final value."""
    entropy_bonus: Literal["above_target", "whole"] = "above_target"
    """The entropy term of the soft value: the temperature times the entropy `above_target`, or
    times the `whole` entropy, as in the paper. The whole is paid at every step of an episode: where
    rewards are small, a long episode without reward can then have the higher value."""
    per_head_temperature: bool = False
    """A temperature for every head, instead of one for all discrete heads and one for all
    continuous ones; joint has one in any case."""
    ent_coef: float | str = "auto_0.2"
    """Entropy coefficient (temperature): "auto_0.2" begins at 0.2 and is learned, so that the
    entropy meets its target; "auto" begins at 1; a number is constant."""
    actor_lr_scale: float = 0.5
    """The actor's learning rate as a multiple of the critics'."""
    max_grad_norm: float = 1.0
    """Maximum gradient norm, of each seed: of its actor, and of all its critics together."""
    actor_gradient: Literal["straight_through", "counterfactual"] = "counterfactual"
    """Gradient of the actor's discrete heads (shared). `counterfactual` evaluates the critics for
    every action of one head of each state, the other heads as drawn: unbiased, but as many
    evaluations as the head has actions, at most 16 on average. `straight_through` takes the
    critics' gradient at actions relaxed by Gumbel-softmax, as in the paper: one evaluation, but
    biased, and often it does not learn."""
    gumbel_start: float = 2.0
    """Initial temperature of Gumbel-softmax (shared, straight_through)."""
    gumbel_decay: float = 0.9995
    """Factor of the Gumbel-softmax temperature at each update."""
    gumbel_floor: float = 0.01
    """Lowest temperature of Gumbel-softmax."""
    activation: Activation = "relu"
    """The activation of actor and critics. The authors' package has tanh."""
    branch_width: int = 32
    """Width of a branching critic's last hidden layer, for the value and for the advantages."""
    policy_gain: float = 2.0**0.5
    """Gain of the orthogonal initialization of the actor's output layer."""

    share_encoder: bool = added(True)
    """Whether the actor uses the critics' encoder of images, entities or vectors without training
    it, or has its own; without an encoder nothing is shared."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("target_entropy", "target_entropy_share"):
            self.require(name, 0.0, 1.0)
        if self.target_entropy_end is not None:
            self.require("target_entropy_end", 0.0, 1.0)
        object.__setattr__(self, "ent_coef", _checked_ent_coef(self.ent_coef))
        self.require("actor_lr_scale", 0.0, 100.0)
        self.require("max_grad_norm", 0.0, 1e9, open_low=True)
        for name in ("gumbel_start", "gumbel_decay", "gumbel_floor"):
            self.require(name, 0.0, 1e3, open_low=True)
        check_counts(self, "branch_width")

    def build(self, task: Task) -> SACLearner:
        """The learner."""
        return SACLearner(self, task)


def _checked_ent_coef(ent_coef: float | str) -> float | str:
    """The weight of entropy that a user gave: "auto" is "auto_1.0", a number is itself."""
    try:
        text = "auto_1" if ent_coef == "auto" else ent_coef
        if isinstance(text, str) and not text.startswith("auto_"):
            raise ValueError
        start, is_learned = begins_at(text)
        if not 0.0 < start <= _LARGEST_ENT_COEF:
            raise ValueError
    except ValueError:
        raise ConfigError(
            "sac setting 'ent_coef' must be a weight of entropy",
            got=ent_coef,
            allowed=f"'auto', 'auto_0.2' to begin at 0.2, or a fixed number; above 0, at most "
            f"{_LARGEST_ENT_COEF:g}",
        ) from None
    return f"auto_{start!r}" if is_learned else start
