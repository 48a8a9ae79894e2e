"""From settings and an observation space to the encoder of a population."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headwise.errors import ConfigError
from headwise.nets.encoders.base import Encoder, EncoderConfig, Flat
from headwise.nets.encoders.cnn import CNN
from headwise.nets.encoders.config import NetworkConfig
from headwise.nets.encoders.entities import Entities
from headwise.nets.encoders.module import Module, check_module
from headwise.nets.encoders.observed import (
    example,
    image_scale,
    read,
    shifted,
    space_of,
    structured,
)
from headwise.ops import Scratch
from headwise.population import Keys
from headwise.population.torch_net import TorchNet
from headwise.spaces import ObsSpec
from headwise.spaces.observation import ObsLeaf

FIRST = 2000
"""The address of the first encoder's parameters in the INIT stream, which no layer reaches."""


def make_encoder(
    network: NetworkConfig,
    spec: ObsSpec,
    keys: Keys,
    number: int,
    *,
    normalized: bool = False,
    shift: int = 0,
) -> Encoder | None:
    """The encoder of a population; None where networks see observations as they are.

    Args:
        network: What was asked for.
        spec: The observation.
        keys: The members' seeds.
        number: Which of a learner's encoders it is; those of one number begin equal.
        normalized: Whether numbers of observations were brought to a common size before.
        shift: Pixels by which images may be shifted.
    """
    _check_shift(network, spec, shift)
    if not network.learns:
        return None
    scratch, number = Scratch(keys.num_members, keys.device), FIRST + number
    own = network.encoder

    def leaves(rows: Tensor, uniform: Tensor | None) -> dict[str, Tensor]:
        found = read(rows, spec, normalized=normalized)
        return found if uniform is None else shifted(found, spec, uniform, shift)

    if isinstance(own, Module):
        made = partial(own.module, space_of(spec))
        width = check_module(own.label, made, lambda rows: structured(example(spec, rows), spec))
        return Encoder(
            TorchNet(made, lambda *given: structured(leaves(*given), spec), number), width, scratch
        )
    _check_images(network, spec)
    net = TorchNet(partial(Joined, network, spec), leaves, number)
    with torch.no_grad():
        width = net.module(example(spec, 1)).shape[-1]
    return Encoder(net, width, scratch)


class Joined(nn.Module):
    """The leaves of observations, each read by a module for its kind, side by side."""

    def __init__(self, network: NetworkConfig, spec: ObsSpec) -> None:
        super().__init__()
        own = network.encoder
        self.paths: list[tuple[str, ...]] = []
        parts: list[nn.Module] = []
        leaves = {leaf.path: leaf for leaf in spec.leaves}
        masks = _checked_entities(network, leaves)
        cnn = own if isinstance(own, CNN) else CNN()
        sets = own if isinstance(own, Entities) else Entities()
        rest = [path for path in spec.slices if path not in {*masks, *masks.values()}]
        for path, mask in masks.items():
            self.paths.append((path, mask))
            parts.append(sets.build(path, leaves[path].shape))
        if own is None or own.reads != "vectors":
            for path in [path for path in rest if path in leaves and image_scale(leaves[path])]:
                self.paths.append((path,))
                parts.append(cnn.build(path, leaves[path].shape))
                rest.remove(path)
        self.rest = rest
        self.parts = nn.ModuleList(parts)
        self.vectors: nn.Module | None = None
        if rest:
            size = sum(_numbers(spec, path) for path in rest)
            by = own if own is not None and own.reads == "vectors" else None
            self.vectors = Flat() if by is None else by.build(", ".join(rest), (size,))

    def forward(self, leaves: dict[str, Tensor]) -> Tensor:
        """Features (B, F) of leaves (B, ...) by their paths."""
        found = [
            part(*(leaves[path] for path in paths))
            for part, paths in zip(self.parts, self.paths, strict=True)
        ]
        if self.vectors is not None:
            found.append(self.vectors(torch.cat([leaves[p].flatten(1) for p in self.rest], dim=-1)))
        return found[0] if len(found) == 1 else torch.cat(found, dim=-1)


def _numbers(spec: ObsSpec, path: str) -> int:
    """Numbers of a leaf as it is read."""
    for leaf in spec.leaves:
        if leaf.path == path and leaf.counts is None:
            return int(torch.Size(leaf.shape).numel())
    where = spec.slices[path]
    return int(where.stop - where.start)


def _checked_entities(network: NetworkConfig, leaves: dict[str, ObsLeaf]) -> dict[str, str]:
    masks: dict[str, str] = network.entities or {}
    own: EncoderConfig | None = network.encoder
    if isinstance(own, Entities) and not masks:
        raise ConfigError(
            "the encoder of entities does not know which leaf they are",
            got="no entities",
            allowed=", ".join(leaves) or "a Dict space with leaves",
            fix='Say it: entities={"units": "units_mask"}.',
        )
    for path, mask in masks.items():
        for name in (path, mask):
            if name not in leaves or leaves[name].counts is not None:
                raise ConfigError(
                    f"entities names {name!r}, which is no leaf of numbers",
                    got=masks,
                    allowed=", ".join(p for p, x in leaves.items() if x.counts is None) or "none",
                )
        shape, present = leaves[path].shape, leaves[mask].shape
        if len(shape) != 2 or present != shape[:1]:
            raise ConfigError(
                f"the entities at {path!r} do not fit their mask at {mask!r}",
                got=f"{shape} and {present}",
                allowed="(N, F) numbers and (N,) of presence",
            )
    return masks


def _check_shift(network: NetworkConfig, spec: ObsSpec, shift: int) -> None:
    """Refuses to shift images where there are none that an encoder reads."""
    if shift and not (network.learns and any(image_scale(leaf) for leaf in spec.leaves)):
        raise ConfigError(
            "random_shift moves images, and no encoder reads one",
            got=f"random_shift={shift}",
            allowed="0, or an observation with an image",
            fix="Leave random_shift out.",
        )


def _check_images(network: NetworkConfig, spec: ObsSpec) -> None:
    """Refuses a cnn where there is nothing that it could read."""
    if not isinstance(network.encoder, CNN):
        return
    for leaf in spec.leaves:
        if leaf.counts is None and len(leaf.shape) == 3 and image_scale(leaf) is None:
            raise ConfigError(
                f"the image at {leaf.path!r} has numbers outside [0, 1] and [0, 255]",
                got=f"{leaf.dtype} from {leaf.low:g} to {leaf.high:g}",
                allowed="uint8, or floats whose space says 0 to 1 or 0 to 255",
                fix="Say the bounds in the observation space: Box(0, 255, shape, np.uint8).",
            )
    if not any(image_scale(leaf) for leaf in spec.leaves):
        got: Any = {leaf.path: leaf.shape for leaf in spec.leaves} or f"a vector of {spec.size}"
        raise ConfigError(
            "a cnn reads images, and this observation has none",
            got=got,
            allowed="a Box of rank 3: (height, width, channels), or channels first",
            fix='Add an axis for the channel, stack frames along it, or use encoder="vector".',
        )
