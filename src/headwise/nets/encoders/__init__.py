"""Encoders: from observations to the features that networks see. One file each.

Importing this package imports every module in its folder, so a new file is registered by existing.
"""

import importlib
import pkgutil

from headwise.nets.encoders.base import Encoder, EncoderConfig, encoders, with_encoder
from headwise.nets.encoders.build import make_encoder
from headwise.nets.encoders.cnn import CNN
from headwise.nets.encoders.config import NetworkConfig
from headwise.nets.encoders.entities import Entities
from headwise.nets.encoders.module import Module
from headwise.nets.encoders.simba import SimBa
from headwise.nets.encoders.vector import Vector

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "CNN", "Encoder", "EncoderConfig", "Entities", "Module", "NetworkConfig", "SimBa", "Vector",
    "encoders", "make_encoder", "with_encoder",
]  # fmt: skip
