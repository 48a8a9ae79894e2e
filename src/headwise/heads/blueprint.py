"""What networks are built from, and what a policy and a critic of policy gradients are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

import torch

from headwise.heads.layout import Layout
from headwise.ops import Activation, Buffer, Evaluation, HeadTable, Layer, Network, Scratch
from headwise.ops.heads import Kind
from headwise.population.store import Free
from headwise.population.torch_net import TorchNet

Part: TypeAlias = Network | Free | TorchNet

Importance: TypeAlias = Literal["uniform", "range", "range_slope", "grad", "signed", "state"]
"""How a branching critic of PPO tells how much each head matters."""


@dataclass(frozen=True)
class Blueprint:
    """What networks are built from: sizes and kinds."""

    layout: Layout
    members: int
    features: int
    """Inputs of each network."""
    rows: int
    """The most rows of a call."""
    device: torch.device
    net_arch: Sequence[int]
    activation: Activation = "relu"
    branch_width: int = 128
    """Width of each half of the layer before a dueling network's outputs."""
    dueling: bool = True
    """Whether values of DQN are a state's value and advantages, or a number for each option."""
    orthogonal: bool = True
    """Whether value networks begin orthogonal."""
    kind: Kind = "squashed"
    log_std: tuple[float, float] = (-3.0, 1.0)
    state_std: bool = False
    """Whether standard deviations are functions of the state, or parameters."""
    policy_gain: float = 2.0**0.5
    """The gain of a policy's output layer."""
    mean_penalty: float = 0.0
    """Weight of squared means of continuous heads beyond 4 in size."""

    @property
    def gain(self) -> float | None:
        """The gain of a value network's layers."""
        return 2.0**0.5 if self.orthogonal else None

    def network(
        self,
        leaves: Sequence[int],
        layers: Sequence[Layer],
        *,
        copies: int = 1,
        sees: Sequence[Sequence[Sequence[tuple[int, int]]]] | None = None,
        shows_hidden: bool = False,
        rows: int = 0,
    ) -> Network:
        """A network of these inputs and layers."""
        return Network(
            leaves, layers, self.members, rows or self.rows, copies=copies, sees=sees,
            shows_hidden=shows_hidden, device=self.device,
        )  # fmt: skip

    def encoder(self, gain: float | None = None) -> list[Layer]:
        """The hidden layers."""
        return [Layer(width, self.activation, gain) for width in self.net_arch]

    def scratch(self) -> Scratch:
        """Buffers for what lies between operations."""
        return Scratch(self.members, self.device)


class Actions(NamedTuple):
    """Actions that were taken, (P, 1, B, ...), and what goes with them."""

    raw: Buffer
    """As they were drawn."""
    unit: Buffer
    """With real numbers in [-1, 1]."""
    mask: Buffer | None = None
    """Which options could be chosen, (P, 1, B, total)."""
    old: Buffer | None = None
    """The policy that acted, where its divergence is wanted."""
    option: Buffer | None = None
    """The options of a branching critic, (P, 1, B, H)."""
    probs: Buffer | None = None
    """How likely the policy was to choose each of them, (P, 1, B, total of the critic)."""
    in_use: Buffer | None = None
    """Which heads are in use, (P, 1, B, H), where not all always are."""


class Policy(Protocol):
    """A distribution over actions given features (P, 1, B, F)."""

    parts: list[Part]
    table: HeadTable

    def sample(
        self, x: Buffer, uniform: Buffer, mask: Buffer | None, out: Sequence[Buffer]
    ) -> None:
        """Draws raw actions, unit actions and log-probabilities."""

    def mode(self, x: Buffer, mask: Buffer | None, out: Sequence[Buffer]) -> None:
        """The greedy raw actions, and the same in unit form."""

    def evaluate(self, x: Buffer, actions: Actions, out: Evaluation) -> None:
        """Log-probabilities and entropies of given actions."""

    def backward(self, x: Buffer, actions: Actions, out: Evaluation) -> None:
        """From the gradients of the last evaluation to those of the parameters."""

    def legal(self, actions: Actions) -> Buffer | None:
        """What limits the options of given actions; None: nothing does."""

    def outputs(self, x: Buffer, actions: Actions) -> tuple[Buffer, Buffer | None]:
        """The networks' outputs for given actions, and the free standard deviations."""


class Critic(Protocol):
    """The value of states, or of actions, that a policy learns by."""

    parts: list[Part]
    num_values: int
    """Values of a state (G): 1, or H where each head has its own."""

    def value(self, x: Buffer) -> Buffer:
        """V, (P, 1, B, G)."""

    def predict(self, x: Buffer, actions: Actions) -> Buffer:
        """What is regressed on the return, (P, 1, B, G)."""

    def backward(self, x: Buffer, actions: Actions) -> None:
        """From the gradient of the last prediction to those of the parameters."""
