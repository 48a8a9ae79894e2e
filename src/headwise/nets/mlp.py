"""A multi-layer perceptron for a population."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from headwise.nets.two_layers import fits_output, fits_two_layers, two_layers
from headwise.population import Activation, Initializer, Linear, bf16
from headwise.population.bf16_network import Piece, fits_at_once, through
from headwise.population.layers import Copy, Part


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

    def forward(self, x: Tensor, output: Linear | None = None) -> Tensor:
        """Features of the inputs, or what a further layer makes of them."""
        return self._through(x, output, None)

    def one(self, copy: Copy, x: Tensor, output: Linear | None = None) -> Tensor:
        """`forward` of one of the copies alone: (P, B, in) to (P, B, last)."""
        return self._through(x, output, copy)

    def pieces(self, copy: Copy | None = None) -> list[Piece]:
        """Its layers as parts of a network that is one call; see `population.bf16_network`."""
        layers = (layer for layer in self.layers if isinstance(layer, Linear))
        return [layer.piece(self.activation, copy) for layer in layers]

    def _through(self, x: Tensor, output: Linear | None, copy: Copy | None) -> Tensor:
        layers = [layer for layer in self.layers if isinstance(layer, Linear)]
        if x.device.type == "cuda" and len(layers) == 2:
            first, second = (_part(layer, copy) for layer in layers)
            if fits_two_layers(x, first, second):
                last = None if output is None else _part(output, copy)
                if last is not None and fits_output(last):
                    return two_layers(x, first, second, self.activation, last)
                x, layers = two_layers(x, first, second, self.activation), []
        elif bf16.fits(x):
            pieces = self.pieces(copy)
            if output is not None:
                pieces.append(output.piece(None, copy))
            trunk, leaf = pieces[:-1], pieces[-1:]
            if leaf and fits_at_once(trunk, leaf):
                return through(x, trunk, leaf)[0]
        for layer in layers:
            x = layer(x, self.activation) if copy is None else layer.one(copy, x, self.activation)
        if output is None:
            return x
        said: Tensor = output(x) if copy is None else output.one(copy, x)
        return said


def _part(layer: Linear, copy: Copy | None) -> Part:
    return layer.part() if copy is None else layer.part_of(copy)
