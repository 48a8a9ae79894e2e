"""Convolutions for images: those of the Nature paper, those of IMPALA, or one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from headwise.errors import ConfigError
from headwise.nets.encoders.base import EncoderConfig, Reads, encoders

Kind = Literal["auto", "nature", "small", "impala"]
Layers = tuple[tuple[int, int, int], ...]

NATURE_SIZE = 36
"""The smallest side that the network of the Nature paper takes."""
SMALLEST = 5
"""The smallest side that is seen as an image unless a setting says so."""
_NATURE: Layers = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
_SMALL: Layers = ((32, 4, 2), (64, 3, 2), (64, 3, 1))
_TINY: Layers = ((32, 3, 1), (32, 3, 2))
_SMALL_SIZE = 16
_IMPALA = (16, 32, 32)


@encoders.register("cnn")
@dataclass(frozen=True)
class CNN(EncoderConfig):
    """Convolutions over each image, then a linear layer."""

    name: ClassVar[str] = "cnn"
    reads: ClassVar[Reads] = "images"

    kind: Kind = "auto"
    """`nature` for sides from 36, `small` with smaller kernels, `impala` with residual blocks;
    `auto` takes nature where it fits, else small."""
    layers: Layers | None = None
    """Your own layers instead: channels, kernel and stride of each."""
    width: int = 0
    """Features of each image; 0 is 512 for nature and for your own layers, and less for
    smaller ones."""
    channels: Literal["auto", "first", "last"] = "auto"
    """Where an image has its channels; `auto` is first where that is the smallest number."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layers is not None and any(len(layer) != 3 for layer in self.layers):
            raise ConfigError(
                "a layer of a cnn is channels, kernel and stride",
                got=self.layers,
                allowed="((32, 8, 4), (64, 4, 2))",
            )
        if self.layers == ():
            raise ConfigError("a cnn needs a layer", got=(), allowed="((32, 8, 4),)")

    def build(self, path: str, shape: tuple[int, ...]) -> nn.Module:
        """A network for an image of this shape."""
        first = _first(shape) if self.channels == "auto" else self.channels == "first"
        channels, height, width = shape if first else (shape[2], shape[0], shape[1])
        side, kind = min(height, width), self.kind
        if kind == "auto":
            kind = "nature" if side >= NATURE_SIZE else "small"
        if kind == "impala" and self.layers is None:
            return Convolutions(_impala(channels), self.width or 256, shape, first=first)
        layers = self.layers or _NATURE
        if self.layers is None and kind == "small":
            layers = _SMALL if side >= _SMALL_SIZE else _TINY
        _check_size(path, (height, width), layers)
        features = self.width or {_SMALL: 256, _TINY: 128}.get(layers, 512)
        return Convolutions(_plain(channels, layers), features, shape, first=first)


class Convolutions(nn.Module):
    """Images (B, ...) to features (B, F)."""

    def __init__(self, body: nn.Module, width: int, shape: tuple[int, ...], *, first: bool) -> None:
        super().__init__()
        self.first, self.body = first, body
        with torch.no_grad():
            size = self.body(self._channels_first(torch.zeros(1, *shape))).shape[-1]
        self.head = nn.Linear(size, width)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.orthogonal_(layer.weight, 2.0**0.5)
                assert layer.bias is not None
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Features of images whose numbers are in [0, 1]."""
        return torch.relu(self.head(self.body(self._channels_first(x))))

    def _channels_first(self, x: Tensor) -> Tensor:
        return x if self.first else x.movedim(-1, -3)


class _Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.one, self.other = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.other(torch.relu(self.one(torch.relu(x))))
        return y


def _plain(channels: int, layers: Layers) -> nn.Module:
    parts: list[nn.Module] = []
    for width, kernel, stride in layers:
        parts += [nn.Conv2d(channels, width, kernel, stride), nn.ReLU()]
        channels = width
    return nn.Sequential(*parts, nn.Flatten())


def _impala(channels: int) -> nn.Module:
    parts: list[nn.Module] = []
    for width in _IMPALA:
        parts += [nn.Conv2d(channels, width, 3, padding=1), nn.MaxPool2d(3, 2, 1)]
        parts += [_Residual(width), _Residual(width)]
        channels = width
    return nn.Sequential(*parts, nn.ReLU(), nn.Flatten())


def _first(shape: tuple[int, ...]) -> bool:
    return shape[0] < shape[-1]


def _check_size(path: str, sides: tuple[int, int], layers: Layers) -> None:
    """Refuses an image of which nothing is left on the way."""
    now = sides
    for channels, kernel, stride in layers:
        if min(now) < kernel:
            raise ConfigError(
                f"the image at {path!r} is too small for its cnn",
                got=f"{sides[0]} x {sides[1]}, which is {now[0]} x {now[1]} at the layer "
                f"{(channels, kernel, stride)}",
                allowed=f"{kernel} x {kernel} or more at that layer",
                fix='Use encoder="cnn", which chooses kernels by the size, or layers of your own: '
                "hw.CNN(layers=((32, 3, 1), (64, 3, 1))).",
            )
        now = ((now[0] - kernel) // stride + 1, (now[1] - kernel) // stride + 1)
