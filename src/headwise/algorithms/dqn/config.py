"""Deep Q-learning over heads, with every factorization: its settings. Ranges are cut into bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from headwise.added import added
from headwise.algorithms.base import PerMember, Task, algorithms
from headwise.algorithms.dqn.learner import DQNLearner
from headwise.algorithms.off_policy import OffPolicyConfig
from headwise.checks import check_counts
from headwise.errors import ConfigError
from headwise.ops import Activation


@algorithms.register("dqn")
@dataclass(frozen=True, kw_only=True)
class DQN(OffPolicyConfig):
    """Deep Q-learning over options, with dueling networks unless they are to be plain."""

    name: ClassVar[str] = "dqn"
    needs: ClassVar[tuple[str, ...]] = ("value",)

    bins: int | dict[str, int] | None = 11
    """Bins of a Range head: one number, or numbers by head."""
    exploration_final_eps: PerMember = 0.1
    """How often a head takes an option at random, in the end."""
    exploration_initial_eps: PerMember = 0.1
    """How often in the beginning."""
    exploration_fraction: float = 0.1
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
    """Whether networks learn a state's value and max-centered advantages, with one more layer above
    the encoder, or a plain number for each option right above it (not for `qplex` and `ar`)."""
    branch_width: int = 128
    """Width of each half of the layer before a dueling network's outputs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("initial_eps", "final_eps", "fraction"):
            self.require(f"exploration_{name}", 0.0, 1.0)
        self.require("munchausen", 0.0, 1.0)
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
