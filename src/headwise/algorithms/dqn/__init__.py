"""Deep Q-learning. Read `gradient_step` in `learner.py` first."""

from headwise.algorithms.dqn.config import DQN

__all__ = ["DQN"]
