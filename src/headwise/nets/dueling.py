"""The branching dueling network: one value, and an advantage for every option of every head.

This is the paper's QS topology: an encoder, one more layer whose first half feeds the value and
whose second half feeds all advantages, and linear outputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwise.heads.blueprint import Blueprint, Part
from headwise.ops import Buffer, Layer


class Dueling:
    """Inputs to a value and uncentered advantages.

    Args:
        copies: Networks that each member has of these, such as twins or one for each head.
    """

    def __init__(
        self, blueprint: Blueprint, leaves: Sequence[int], outputs: int, copies: int = 1
    ) -> None:
        self.width = width = blueprint.branch_width
        layers = [*blueprint.encoder(blueprint.gain), Layer(2 * width, "tanh", blueprint.gain)]
        self._trunk = blueprint.network(leaves, layers, copies=copies)
        self._value = blueprint.network([width], [Layer(1)], copies=copies)
        self._advantage = blueprint.network([width], [Layer(outputs)], copies=copies)
        self.parts: list[Part] = [self._trunk, self._value, self._advantage]
        self.out = self._trunk.out
        """What both are made of, (P, N, rows, 2 * width)."""

    def forward(
        self, x: Sequence[Buffer], copies: Sequence[int] = ()
    ) -> tuple[Buffer, Buffer, Buffer]:
        """V (P, N, B, 1), advantages (P, N, B, outputs), and what they are made of.

        Only the copies named are worked out; all if none is.
        """
        features = self._trunk.forward(x, copies)
        left, right = features.split([self.width, self.width])
        value, advantages = self._value, self._advantage
        return value.forward([left], copies), advantages.forward([right], copies), features

    def value(self, x: Sequence[Buffer]) -> Buffer:
        """V alone, without the half that advantages need."""
        features = self._trunk.forward(x, columns=self.width)
        return self._value.forward([features.columns(0, self.width)])

    def advantages(self, x: Sequence[Buffer], copies: Sequence[int] = ()) -> Buffer:
        """The advantages alone, of the copies named or of all."""
        features = self._trunk.forward(x, copies)
        return self._advantage.forward([features.columns(self.width, self.width)], copies)

    def rows(self, count: int) -> tuple[Buffer, Buffer]:
        """V and advantages of the last `forward` of so many rows."""
        return self._value.rows(count), self._advantage.rows(count)

    def backward(self, x: Sequence[Buffer], *, weights: bool = True, add: bool = False) -> None:
        """From the gradients of value and advantages to those of parameters and inputs."""
        features = self._trunk.rows(x[0].num_rows)
        left, right = features.split([self.width, self.width])
        self._value.backward([left], weights=weights)
        self._advantage.backward([right], weights=weights)
        self._trunk.backward(x, weights=weights, add=add)
