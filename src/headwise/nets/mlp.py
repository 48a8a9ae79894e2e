"""A multi-layer perceptron for a population."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from headwise.nets.two_layers import fits_two_layers, two_layers
from headwise.population import Activation, Initializer, Linear


class MLP(nn.Module):
    """Linear layers with an activation after each: (P, *copies, B, in) to (P, *copies, B, last).

    Args:
        init: Where the first values come from.
        in_features: Inputs.
        hidden: The width of each layer.
        activation: What follows each layer.
        copies: Networks that each member has several of, as stacked axes.
        gain: The gain of an orthogonal initialisation; None takes nn.Linear's own.
    """

    def __init__(
        self,
        init: Initializer,
        in_features: int,
        hidden: Sequence[int],
        activation: Activation = "relu",
        *,
        copies: tuple[int, ...] = (),
        gain: float | None = None,
    ) -> None:
        super().__init__()
        sizes = [in_features, *hidden]
        self.out_features = sizes[-1]
        self.layers = nn.ModuleList(
            Linear(init, before, after, copies=copies, gain=gain)
            for before, after in pairwise(sizes)
        )
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Features of the inputs."""
        if x.device.type == "cuda" and len(self.layers) == 2:
            first, second = (layer.part() for layer in self._linear())
            if fits_two_layers(x, first, second):
                return two_layers(x, first, second, self.activation)
        for layer in self.layers:
            x = layer(x, self.activation)
        return x

    def one(self, copy: int | tuple[int, ...], x: Tensor) -> Tensor:
        """The same for one of the copies alone: (P, B, in) to (P, B, last)."""
        if x.device.type == "cuda" and len(self.layers) == 2:
            first, second = (layer.part_of(copy) for layer in self._linear())
            if fits_two_layers(x, first, second):
                return two_layers(x, first, second, self.activation)
        for layer in self._linear():
            x = layer.one(copy, x, self.activation)
        return x

    def _linear(self) -> list[Linear]:
        return [layer for layer in self.layers if isinstance(layer, Linear)]
