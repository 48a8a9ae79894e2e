"""Proximal policy optimization. Read `gradient_step` in `learner.py` first."""

from headwise.algorithms.ppo.config import PPO

__all__ = ["PPO"]
