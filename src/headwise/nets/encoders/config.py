"""Which encoder reads observations: as it is said, or as the observation space asks for."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from torch import nn

from headwise.added import added
from headwise.described import described
from headwise.errors import ConfigError
from headwise.nets.encoders.base import EncoderConfig, encoders
from headwise.nets.encoders.cnn import CNN, SMALLEST
from headwise.nets.encoders.module import Module
from headwise.nets.encoders.observed import image_scale, is_bytes
from headwise.registry import unknown
from headwise.spaces import ObsSpec

logger = logging.getLogger("headwise.network")
_SHORT = {"nature": CNN("nature"), "impala": CNN("impala")}
_FIX = "Or hand over a class: encoder=MyModule."


@described
@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """How observations are encoded before the networks of policies and critics."""

    encoder: Any = added(None)
    """The encoder: vector, cnn, nature, impala, entities, simba, or a class or function of the
    observation space that returns a torch module; if not given, a cnn for images, and none for
    vectors."""
    entities: Any = added(None)
    """Parts of a Dict observation, (N, F), that are sets of entities, each with the part that masks
    those present: {"units": "mask"}."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoder", _encoder(self.encoder))
        object.__setattr__(self, "entities", _entities(self.entities))

    @property
    def learns(self) -> bool:
        """Whether there is an encoder that learns."""
        return bool(self.entities) or (self.encoder is not None and self.encoder.learns)

    def chosen(self, spec: ObsSpec) -> NetworkConfig:
        """The same with a cnn where no encoder is set, and there are images of bytes."""
        if self.encoder is not None or not any(_is_picture(leaf) for leaf in spec.leaves):
            return self
        found = replace(self, encoder=CNN())
        logger.info("network: %s", found)
        return found

    def __str__(self) -> str:
        """What reads observations, in a line."""
        if not self.learns:
            return "networks see observations as they are"
        sets = ", ".join(self.entities or {})
        also = f", and sets of entities at {sets} by attention" if sets else ""
        by = "attention" if self.encoder is None else self.encoder
        return f"observations are read by {by}{also}"

    def handed(self, encoder: Any) -> NetworkConfig:
        """The same with a user's module, of which a file has only the name."""
        own = self.encoder
        if isinstance(own, Module) and encoder is not None:
            given = _encoder(encoder)
            if isinstance(given, Module):
                return replace(self, encoder=given)
        if isinstance(own, Module):
            own.module(None)
        elif encoder is not None:
            raise ConfigError(
                "encoder is fixed in a checkpoint", got=encoder, fix="Train a new Agent with it."
            )
        return self

    def check_plain(self) -> None:
        """Refuses a user's module where settings are kept as plain data."""
        if isinstance(self.encoder, Module):
            raise ConfigError(
                "runs of a study are plain data, and this encoder is a module of your own",
                got=self.encoder.label,
                allowed="a registered encoder, such as cnn",
                fix="Register it: a dataclass that derives from EncoderConfig, with a name.",
            )

    def to_json(self) -> dict[str, Any]:
        """The settings as plain data; a user's module by its name."""
        plain = None
        if self.encoder is not None:
            plain = {f.name: getattr(self.encoder, f.name) for f in fields(self.encoder)}
            plain.pop("make", None)
            plain = {"name": self.encoder.name, **plain}
        said = {"encoder": plain, "entities": self.entities}
        return {name: value for name, value in said.items() if value is not None}


def _is_picture(leaf: Any) -> bool:
    """Whether a leaf is seen as an image though no setting says so."""
    return image_scale(leaf) is not None and is_bytes(leaf) and sorted(leaf.shape)[1] >= SMALLEST


def _encoder(value: Any) -> EncoderConfig | None:
    if value is None or isinstance(value, EncoderConfig):
        return value
    if isinstance(value, str):
        if value in _SHORT:
            return _SHORT[value]
        names = [name for name in encoders.names() if name != Module.name]
        if value not in names:
            raise unknown("encoder", value, [*names, *_SHORT])
        return encoders.get(value)()
    if isinstance(value, Mapping):  # of a file
        settings = dict(value)
        return encoders.get(settings.pop("name"))(**settings)
    if isinstance(value, nn.Module):
        raise ConfigError(
            "every member begins with parameters of its own, so an encoder is a class or a "
            "function that makes one, not a module",
            got=type(value).__name__,
            fix=f"Write encoder={type(value).__name__}, or encoder=lambda space: ....",
        )
    if isinstance(value, type) and issubclass(value, EncoderConfig):
        return value()
    if callable(value):
        return Module.of(value)
    raise ConfigError(
        "encoder is none", got=value, allowed=", ".join([*encoders.names(), *_SHORT]), fix=_FIX
    )


def _entities(value: Any) -> dict[str, str] | None:
    if not value:
        return None
    if not isinstance(value, Mapping) or not all(
        isinstance(x, str) for pair in value.items() for x in pair
    ):
        raise ConfigError(
            "entities names leaves of the observation, each with its mask of presence",
            got=value,
            allowed='{"units": "units_mask"}',
        )
    return dict(value)
