"""Which memory a plan gets, and how many updates are due by it."""

import pytest

from headwise.algorithms.base import ReplayPlan, RolloutPlan
from headwise.envs.make import make_vec
from headwise.training.memory import memory_for
from headwise.training.replay import Replay
from headwise.training.rollout import Rollout


def test_a_rollout_is_as_long_as_its_plan_and_a_replay_holds_its_capacity():
    env = make_vec("probe/agree", (0, 1), 5)
    rollout = memory_for(RolloutPlan(7), env)
    assert isinstance(rollout, Rollout)
    assert rollout.length == 7
    replay = memory_for(ReplayPlan(100, 8, 16, 0.5), env)
    assert isinstance(replay, Replay)
    assert (replay.rows, replay.num_slots) == (20, 5)


@pytest.mark.parametrize(("steps", "updates"), [(0, 0), (16, 0), (17, 0), (18, 1), (116, 50)])
def test_updates_are_due_in_proportion_to_the_steps_after_the_warmup(steps, updates):
    assert ReplayPlan(100, 8, learning_starts=16, updates_per_step=0.5).updates_by(steps) == updates
