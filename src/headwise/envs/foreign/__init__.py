"""Environments that are not ours: Gymnasium's and PettingZoo's, one, many or made on demand."""

from headwise.envs.foreign.source import TRANSLATING, foreign_env, is_itself, wrap
from headwise.envs.foreign.vec_env import ForeignVecEnv

__all__ = ["TRANSLATING", "ForeignVecEnv", "foreign_env", "is_itself", "wrap"]
