"""Attention over a set of entities, some of which may be absent; their order does not matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from headwise.checks import check_counts
from headwise.errors import ConfigError
from headwise.nets.encoders.base import EncoderConfig, Reads, encoders

_NEVER = -1e9


@encoders.register("entities")
@dataclass(frozen=True)
class Entities(EncoderConfig):
    """Each entity embedded, attention among those present, and their mean and maximum."""

    name: ClassVar[str] = "entities"
    reads: ClassVar[Reads] = "entities"

    width: int = 64
    """Features of an entity."""
    heads: int = 4
    """Heads of the attention."""
    blocks: int = 1
    """Layers of attention; 0 leaves it out, and entities are pooled as they are."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "width", "heads")
        if self.width % self.heads:
            raise ConfigError(
                "the heads of the attention do not share its width evenly",
                got=f"width={self.width}, heads={self.heads}",
                allowed=f"a multiple of {self.heads}",
            )

    def build(self, path: str, shape: tuple[int, ...]) -> nn.Module:
        """A network for (N, F) numbers, called with them and with (N,) of presence."""
        return SetNet(shape[-1], self.width, self.heads, self.blocks)


class SetNet(nn.Module):
    """Entities (B, N, F) and presence (B, N) to features (B, 2 * width), of any order alike."""

    def __init__(self, size: int, width: int, heads: int, blocks: int) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(size, width), nn.ReLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(blocks))

    def forward(self, x: Tensor, presence: Tensor) -> Tensor:
        """Features; zeros where no entity is present."""
        present = (presence > 0.5).unsqueeze(-1)
        h = self.embed(x)
        for block in self.blocks:
            h = block(h, present)
        weight = present.to(h.dtype)
        mean = (h * weight).sum(-2) / weight.sum(-2).clamp_min(1.0)
        largest = torch.where(present, h, _NEVER).amax(-2)
        return torch.cat([mean, torch.where(largest > _NEVER, largest, 0.0)], dim=-1)


class _Block(nn.Module):
    """Attention among those present, and a perceptron, both added to what was there."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        query, key, value = (self._split(y) for y in self.mix(self.before(x)).chunk(3, dim=-1))
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        scores = torch.where(present.transpose(-1, -2).unsqueeze(-3), scores, _NEVER)
        mixed = (scores.softmax(-1) @ value).transpose(-2, -3).flatten(-2)
        x = x + self.out(mixed)
        y: Tensor = x + self.mlp(self.between(x))
        return y

    def _split(self, x: Tensor) -> Tensor:
        """(B, N, width) as (B, heads, N, width / heads)."""
        return torch.unflatten(x, -1, (self.heads, -1)).transpose(-2, -3)
