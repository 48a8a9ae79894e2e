"""Soft actor-critic. Read `gradient_step` in `learner.py` first."""

from headwise.algorithms.sac.config import SAC

__all__ = ["SAC"]
