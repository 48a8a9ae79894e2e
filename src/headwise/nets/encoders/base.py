"""What an encoder is: settings in a registry, a torch module made of them, and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from torch import Tensor, nn

from headwise.checks import check_settings
from headwise.heads.blueprint import Part
from headwise.ops import Buffer, Scratch
from headwise.population.torch_net import TorchNet
from headwise.registry import Registry

Reads: TypeAlias = Literal["vectors", "images", "entities", "everything"]

encoders: Registry[type[EncoderConfig]] = Registry("encoder")


@dataclass(frozen=True)
class EncoderConfig:
    """How one kind of leaves becomes features; the other kinds are read as they always are."""

    name: ClassVar[str]
    reads: ClassVar[Reads]
    """The leaves it is for: one module for each image and each set of entities, one for all
    vectors side by side, or one for the whole observation."""
    learns: ClassVar[bool] = True
    """Whether there is anything to learn."""
    normalizes: ClassVar[bool] = False
    """Whether observations must be brought to mean 0 and standard deviation 1 before it."""

    def __post_init__(self) -> None:
        check_settings(self)

    def build(self, path: str, shape: tuple[int, ...]) -> nn.Module:
        """A module from a leaf (B, *shape) to features (B, F).

        Args:
            path: What errors call the leaf.
            shape: That of the leaf.
        """
        raise NotImplementedError


class Encoder:
    """Observations (P, 1, B, W) as rows of words to features (P, 1, B, F), for a learner.

    Args:
        net: The module of every member.
        width: Features (F).
        members: Members (P).
    """

    def __init__(self, net: TorchNet, width: int, scratch: Scratch) -> None:
        self.net, self.width, self._scratch = net, width, scratch
        self.parts: list[Part] = [net]

    def forward(
        self, obs: Buffer, name: str, *, learns: bool = False, shift: Buffer | None = None
    ) -> Buffer:
        """Features of observations, in the same place for the same name.

        Args:
            obs: The observations.
            name: What they are called.
            learns: Whether they have a gradient, from which `backward` may begin.
            shift: Uniform numbers (P, 1, B, 2) by which images are shifted; None: they are not.
        """
        features = self._scratch(name, obs.num_rows, self.width, gradient=learns)
        self.net.forward(obs, features, shift)
        return features

    def backward(self, features: Buffer) -> None:
        """From the gradient of features that learn to those of the parameters."""
        self.net.backward(features)


def with_encoder(parts: Sequence[Part], *more: Encoder | None) -> list[Part]:
    """Parts of a learner and its encoders, which come last."""
    return [*parts, *(part for one in more if one is not None for part in one.parts)]


class Flat(nn.Module):
    """Everything of a leaf side by side."""

    def forward(self, x: Tensor) -> Tensor:
        """A leaf (B, ...) as (B, F)."""
        return x.flatten(1)
