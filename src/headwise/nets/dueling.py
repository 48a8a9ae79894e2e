"""The branching dueling network: one value, and an advantage for every option of every head.

This is the paper's QS topology: an encoder, one more layer whose first half feeds the value and
whose second half feeds all advantages, and linear outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn

from headwise.nets.branches import branch, fits_branches, second_half, two_branches
from headwise.nets.mlp import MLP
from headwise.population import Activation, Initializer, Linear, bf16
from headwise.population.bf16_network import Piece, fits_at_once, through


class Dueling(nn.Module):
    """Inputs to a value (..., B) and raw, uncentred advantages (..., B, num_outputs).

    Args:
        init: Where the first values come from.
        in_features: Inputs.
        num_outputs: Advantages in all, one for each option of each head.
        hidden: Widths of the encoder.
        branch_width: Width of each half of the layer before the outputs.
        activation: The encoder's activation; the layer before the outputs has tanh.
        copies: Networks that each member has several of, as stacked axes.
        orthogonal: Whether encoder and head layer begin orthogonal, with gain sqrt(2).
    """

    def __init__(
        self,
        init: Initializer,
        in_features: int,
        num_outputs: int,
        hidden: Sequence[int],
        branch_width: int,
        activation: Activation,
        *,
        copies: tuple[int, ...] = (),
        orthogonal: bool = True,
    ) -> None:
        super().__init__()
        gain = math.sqrt(2.0) if orthogonal else None
        self.encoder = MLP(init, in_features, hidden, activation, copies=copies, gain=gain)
        self.embedding_size = 2 * branch_width
        self.embedding = Linear(
            init, self.encoder.out_features, self.embedding_size, copies=copies, gain=gain
        )
        self.value = Linear(init, branch_width, 1, copies=copies)
        self.advantage = Linear(init, branch_width, num_outputs, copies=copies)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Value (..., B) and advantages (..., B, num_outputs)."""
        value, advantages, _ = self._branches(x, keep=False)
        return value, advantages

    def with_embedding(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Value and advantages, and the features that they are made of, (..., B, embedding_size).

        No gradient comes back through those features.
        """
        value, advantages, embedding = self._branches(x, keep=True)
        assert embedding is not None
        return value, advantages, embedding.detach()

    def value_alone(self, x: Tensor) -> Tensor:
        """The value (..., B) at half the price: without the half above it that advantages need."""
        half = self.embedding_size // 2
        alone = self._at_once(x, (0, half), [self.value.piece()])
        if alone is not None:
            return alone[0].squeeze(-1)
        features = self.encoder(x)
        if features.device.type == "cuda":
            parts = self.embedding.part(half), self.value.part()
            if fits_branches(features, *parts):
                return branch(features, *parts).squeeze(-1)
        embedding = self.embedding.first(half, features, "tanh")
        return self.value(embedding).squeeze(-1)  # type: ignore[no-any-return]

    def advantages_alone(self, x: Tensor) -> Tensor:
        """The advantages (..., B, num_outputs) without the value."""
        half = self.embedding_size // 2
        alone = self._at_once(x, (half, half), [self.advantage.piece()])
        if alone is not None:
            return alone[0]
        features = self.encoder(x)
        if features.device.type == "cuda":
            parts = second_half(self.embedding.part()), self.advantage.part()
            if fits_branches(features, *parts):
                return branch(features, *parts)
        _, for_advantage = self.embedding(features, "tanh").chunk(2, dim=-1)
        advantages: Tensor = self.advantage(for_advantage)
        return advantages

    def _branches(self, x: Tensor, *, keep: bool) -> tuple[Tensor, Tensor, Tensor | None]:
        """Value, advantages, and the embedding, which is always there if it is to be kept."""
        outputs = [self.value.piece(), self.advantage.piece(reads=self.embedding_size // 2)]
        both = self._at_once(x, None, outputs, keep=keep)
        if both is not None:
            return both[0].squeeze(-1), both[1], both[2] if keep else None
        features = self.encoder(x)
        if features.device.type == "cuda":
            parts = self.embedding.part(), self.value.part(), self.advantage.part()
            if fits_branches(features, *parts):
                return two_branches(features, *parts, keep=keep)
        embedding: Tensor = self.embedding(features, "tanh")
        for_value, for_advantage = embedding.chunk(2, dim=-1)
        return self.value(for_value).squeeze(-1), self.advantage(for_advantage), embedding

    def _at_once(
        self,
        x: Tensor,
        units: tuple[int, int] | None,
        outputs: list[Piece],
        *,
        keep: bool = False,
    ) -> tuple[Tensor, ...] | None:
        """What outputs make of the inputs by way of some units of the embedding, in one call.

        None where that is not possible: see `headwise.population.bf16_network`.
        """
        if not bf16.fits(x):
            return None
        trunk = [*self.encoder.pieces(), self.embedding.piece("tanh", columns=units)]
        return through(x, trunk, outputs, keep=keep) if fits_at_once(trunk, outputs) else None
