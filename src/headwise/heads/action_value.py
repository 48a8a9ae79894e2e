"""What the value of an action is: what DQN learns, and in two copies the critics of SAC.

Actions are the learner's, (P, 1, B, H): discrete heads first. Real numbers are given to a value as
inputs; options are given as well, or it chooses them itself.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from headwise.heads.blueprint import Part, Policy
from headwise.ops import Buffer, Draw


class Soft(NamedTuple):
    """The soft value of states: that of a policy with an entropy bonus."""

    value: Buffer
    """(P, N, B, G); the entropy of heads that an actor has drawn is not counted yet."""
    entropy: Buffer | None
    """Of each discrete head by the first copy, (P, 1, B, D), weighted with how likely the head is
    to be in use; None where an actor has it."""
    use: Buffer | None
    """How likely each head is to be in use, (P, 1, B, H); None where all always are, or where an
    actor knows."""


class ActionValue(Protocol):
    """The value of actions, in N copies; every copy sees the same.

    `backward` follows a `predict` of the same arguments, and `soft_backward` a `soft`.
    """

    parts: list[Part]
    num_values: int
    """Values of an action (G): 1, or H where each head has its own."""
    independent: bool
    """Whether heads are learners of their own: their losses are added up, and each has a bonus
    for its own entropy alone."""

    def predict(self, x: Buffer, action: Buffer, mask: Buffer | None) -> Buffer:
        """Q of given actions, (P, N, B, G); `mask` says which options there were."""

    def backward(
        self, x: Buffer, action: Buffer, mask: Buffer | None, *, weights: bool = True
    ) -> None:
        """From the gradient of what was predicted to those of parameters and of the action.

        Parameters are held constant without `weights`; an action has a gradient if it has room.
        """

    def greedy(self, x: Buffer, action: Buffer, mask: Buffer | None) -> None:
        """Writes the first copy's best options into actions whose real numbers are given."""


class DiscreteValue(ActionValue, Protocol):
    """The value of actions whose heads are all discrete, which DQN learns."""

    def greedy_value(self, x: Buffer, mask: Buffer | None) -> Buffer:
        """The value that `predict` gives the greedy action, (P, N, B, 1 or G)."""


class SoftValue(ActionValue, Protocol):
    """A value that is also that of a policy: a softmax of options' values."""

    def draw(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer, mask: Buffer | None
    ) -> None:
        """Writes options drawn from the first copy's softmax into actions.

        Args:
            x: The states, (P, 1, B, F).
            action: Actions whose real numbers are given, (P, 1, B, H).
            alpha: Temperatures, (P, 1, 1, H or D).
            uniform: Uniform numbers, (P, 1, B, D or more).
            mask: Which options may be chosen, (P, 1, B, total).
        """

    def soft(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer | None, mask: Buffer | None
    ) -> Soft:
        """The soft value of states; see `draw`. What a copy draws on the way is no outcome."""

    def soft_backward(self, x: Buffer, action: Buffer, alpha: Buffer, mask: Buffer | None) -> None:
        """From the gradient of the soft value to that of the real numbers of actions."""


class ClosedFormValue(DiscreteValue, Protocol):
    """A value whose soft value needs no draw: what DQN needs at a temperature."""

    def soft(
        self, x: Buffer, action: Buffer, alpha: Buffer, uniform: Buffer | None, mask: Buffer | None
    ) -> Soft:
        """The soft value of states."""

    def log_policy(self, x: Buffer, action: Buffer, alpha: Buffer, mask: Buffer | None) -> Buffer:
        """Temperatures times the log-policies of the options taken, (P, 1, B, D)."""


class Actor(Policy, Protocol):
    """A policy through whose actions gradients flow."""

    def rsample(self, x: Buffer, uniform: Buffer, mask: Buffer | None, out: Draw) -> None:
        """Draws actions, entropies and log-probabilities."""

    def rsample_backward(self, x: Buffer, uniform: Buffer, mask: Buffer | None, out: Draw) -> None:
        """From the gradients of what was drawn last to those of the parameters."""
