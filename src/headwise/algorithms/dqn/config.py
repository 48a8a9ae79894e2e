"""The settings of deep Q-learning (DQN)."""

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
    """Deep Q-learning over discrete heads; continuous heads are cut into bins.

    Networks are dueling by default. Each head is epsilon-greedy, independently of the others.
    """

    name: ClassVar[str] = "dqn"
    needs: ClassVar[tuple[str, ...]] = ("value",)

    bins: int | dict[str, int] | None = 11
    """Bins that a continuous head (Range) is cut into: one number for all such heads, or one by
    head name."""
    exploration_final_eps: PerMember = 0.1
    """Final probability that a head takes a random action."""
    exploration_initial_eps: PerMember = 0.1
    """Initial probability that a head takes a random action."""
    exploration_fraction: float = 0.1
    """Fraction of the run over which the initial probability becomes the final one."""
    double_q: bool = False
    """Double DQN: the online network selects the next action, the target network evaluates it."""
    loss: Literal["squared", "huber"] = "squared"
    """The loss of the temporal-difference error."""
    temperature: float = 0.0
    """Temperature of soft Q-learning: above 0 a target has the soft value of the next state, which
    is that of the softmax policy with its entropy. The policy that acts is greedy in any case."""
    munchausen: float = 0.0
    """Weight of the scaled log-policy that Munchausen DQN adds to rewards; needs a temperature."""
    munchausen_floor: float = -1.0
    """Lower bound of the scaled log-policy that Munchausen DQN adds."""
    max_grad_norm: float = 10.0
    """Maximum gradient norm, of each seed."""
    activation: Activation = "relu"
    """Activation of the hidden layers."""
    dueling: bool = added(True)
    """Dueling networks: a state's value and max-centered advantages, each with one more hidden
    layer. Without, a network has one Q-value for each action of a head (not for qplex and ar)."""
    branch_width: int = 128
    """Width of the last hidden layer of a dueling network, for the value and for the advantages."""

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
