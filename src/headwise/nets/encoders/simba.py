"""SimBa: residual blocks with layer normalization, over normalized observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from headwise.checks import check_counts
from headwise.nets.encoders.base import EncoderConfig, Reads, encoders


@encoders.register("simba")
@dataclass(frozen=True)
class SimBa(EncoderConfig):
    """The encoder of SimBa for vectors; it turns `normalize_obs` on, which is a part of it."""

    name: ClassVar[str] = "simba"
    reads: ClassVar[Reads] = "vectors"
    normalizes: ClassVar[bool] = True

    width: int = 256
    """Features, and the width between blocks."""
    blocks: int = 2
    """Residual blocks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "width", "blocks")

    def build(self, path: str, shape: tuple[int, ...]) -> nn.Module:
        """A linear layer, the blocks, and a layer normalization."""
        blocks = [_Block(self.width) for _ in range(self.blocks)]
        first = nn.Linear(shape[-1], self.width)
        nn.init.orthogonal_(first.weight)
        nn.init.zeros_(first.bias)
        return nn.Sequential(first, *blocks, nn.LayerNorm(self.width))


class _Block(nn.Module):
    """x + MLP(LayerNorm(x)), four times as wide inside."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        for layer in (self.wide, self.narrow):
            nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.narrow(torch.relu(self.wide(self.norm(x))))
        return y
