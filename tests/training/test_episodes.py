import time

import numpy as np

from headwise.envs.types import StepBatch
from headwise.training.episodes import Episodes


def step(ended=(), cut=(), invalid=()):
    """Two members with two slots; slots that ended returned 10 member + slot in 5 steps."""
    batch = StepBatch.of_shape(2, 2, 1)
    batch.valid[...] = True
    for flag, where in ((batch.terminated, ended), (batch.truncated, cut)):
        for place in where:
            flag[place] = True
    for place in invalid:
        batch.valid[place] = False
    batch.episode_return[...] = [[0, 1], [10, 11]]
    batch.episode_length[...] = 5
    return batch


def test_a_row_for_each_episode_that_ended_either_way():
    episodes = Episodes()
    episodes.add(step(), 2)
    assert episodes.table.shape == (0, 4)
    episodes.add(step(ended=[(0, 1)], cut=[(1, 0)]), 4)
    episodes.add(step(ended=[(1, 1)]), 6)
    np.testing.assert_array_equal(
        episodes.table, [[4, 0, 1, 5], [4, 1, 10, 5], [6, 1, 11, 5]]
    )  # steps, member, return, length


def test_a_step_that_was_no_transition_ends_nothing():
    episodes = Episodes()
    episodes.add(step(ended=[(0, 0)], invalid=[(0, 0)]), 2)
    assert len(episodes.table) == 0


def test_recent_return_is_each_members_own():
    episodes = Episodes()
    assert np.isnan(episodes.recent_return(2)).all()
    episodes.add(step(ended=[(1, 0)]), 2)
    episodes.add(step(ended=[(1, 1)]), 4)
    recent = episodes.recent_return(2)
    assert np.isnan(recent[0])
    assert recent[1] == 10.5
    assert episodes.recent_return(2, episodes=1)[1] == 11.0


def test_the_table_can_be_put_back():
    episodes, fresh = Episodes(), Episodes()
    episodes.add(step(ended=[(0, 0), (1, 1)]), 2)
    fresh.table = episodes.table
    episodes.add(step(ended=[(0, 1)]), 4)
    fresh.add(step(ended=[(0, 1)]), 4)
    np.testing.assert_array_equal(fresh.table, episodes.table)


def test_only_the_last_rows_are_kept_and_the_same_ones_after_a_break():
    """Three rows of four; what a member did last is known all the same."""
    kept, resumed = Episodes(keep=3), Episodes(keep=3)
    for number, place in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        kept.add(step(ended=[place]), number)
        if number == 1:
            resumed.table = kept.table
        if number > 1:
            resumed.add(step(ended=[place]), number)
    np.testing.assert_array_equal(kept.table[:, 0], [1, 2, 3])
    np.testing.assert_array_equal(kept.table, resumed.table)
    assert kept.last(0)[0].tolist() == [0.0, 1.0]
    assert kept.last(1, 1)[0].tolist() == [11.0]


def test_what_is_recent_does_not_take_longer_in_a_long_run():
    """A million episodes later, a thousand questions take a fraction of a second."""
    episodes = Episodes()
    rows = np.zeros((1_000_000, 4))
    rows[:, 1] = np.arange(len(rows)) % 4
    rows[:, 2] = np.arange(len(rows))
    episodes.table = rows
    start = time.perf_counter()
    for _ in range(1000):
        recent = episodes.recent_return(4)
    assert time.perf_counter() - start < 0.5
    # Member m's last 100 returns: m + 4 (249900 ... 249999).
    np.testing.assert_array_equal(recent, np.arange(4) + 4 * (249_900 + 249_999) / 2)
