"""Encoders: from observations to the features that networks see. One file each."""

from headwise.nets.encoders.base import Encoder, EncoderConfig, encoders, with_encoder
from headwise.nets.encoders.build import make_encoder
from headwise.nets.encoders.cnn import CNN
from headwise.nets.encoders.config import NetworkConfig
from headwise.nets.encoders.entities import Entities
from headwise.nets.encoders.module import Module
from headwise.nets.encoders.simba import SimBa
from headwise.nets.encoders.vector import Vector

__all__ = [
    "CNN", "Encoder", "EncoderConfig", "Entities", "Module", "NetworkConfig", "SimBa", "Vector",
    "encoders", "make_encoder", "with_encoder",
]  # fmt: skip
