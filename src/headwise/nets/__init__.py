"""Networks made of stacked layers."""

from headwise.nets.dueling import Dueling
from headwise.nets.mixer import Mixer
from headwise.nets.mlp import MLP, Activation

__all__ = ["MLP", "Activation", "Dueling", "Mixer"]
