"""Soft actor-critic over heads, with every factorization: its settings."""

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
    """Soft actor-critic."""

    name: ClassVar[str] = "sac"
    needs: ClassVar[tuple[str, ...]] = ("twins",)

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
    ent_coef: float | str = "auto_0.2"
    """The temperature, which is the weight of entropy: "auto_0.2" begins at 0.2 and is learned, so
    that entropy meets its target; "auto" begins at 1; a number stays what it is."""
    actor_lr_scale: float = 0.5
    """The actor's step size as a multiple of the critics'."""
    max_grad_norm: float = 1.0
    """The longest gradient of a member's actor, and of all its critics together."""
    actor_gradient: Literal["straight_through", "counterfactual"] = "counterfactual"
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

    share_encoder: bool = added(True)
    """Whether the actor reads images, entities or vectors by the critics' encoder, of which it
    learns nothing, or by one of its own; networks that see observations as they are share nothing.
    """

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
