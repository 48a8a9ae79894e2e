"""Networks made of stacked layers."""

from headwise.nets.dueling import Dueling
from headwise.nets.mixer import Mixer
from headwise.nets.mlp import MLP
from headwise.population import Activation

__all__ = ["MLP", "Activation", "Dueling", "Mixer"]
