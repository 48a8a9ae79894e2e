"""Vectors are features as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from headwise.nets.encoders.base import EncoderConfig, Flat, Reads, encoders


@encoders.register("vector")
@dataclass(frozen=True)
class Vector(EncoderConfig):
    """No encoder: networks see all numbers of an observation side by side, images included."""

    name: ClassVar[str] = "vector"
    reads: ClassVar[Reads] = "vectors"
    learns: ClassVar[bool] = False

    def build(self, path: str, shape: tuple[int, ...]) -> nn.Module:
        """What leaves a vector as it is."""
        return Flat()
