"""What a loop remembers for its learner: the rollout under way, or as much of the past as fits."""

from __future__ import annotations

import logging
from typing import TypeAlias

from torch import Tensor

from headwise.algorithms.base import ReplayPlan, RolloutPlan
from headwise.training.lazy_env import LazyEnv
from headwise.training.replay import Replay
from headwise.training.rollout import Rollout

Memory: TypeAlias = Rollout | Replay

logger = logging.getLogger("headwise")


def memory_for(plan: RolloutPlan | ReplayPlan, env: LazyEnv) -> Memory:
    """The memory that a learner's plan asks for, of what is seen in an environment."""
    if isinstance(plan, RolloutPlan):
        return Rollout(plan.length)
    return Replay(plan.capacity, env.num_slots, plan.n_step)


def load_memory(memory: Memory, state: dict[str, Tensor], num_slots: int) -> None:
    """Goes back to a saved memory; a rollout of other slots or another length is left out."""
    if isinstance(memory, Rollout) and not memory.fits(state, num_slots):
        logger.warning("The rollout under way does not fit and is left out: a new one begins.")
        return
    memory.load_state_dict(state)
