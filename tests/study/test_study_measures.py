"""Final scalars and learning curves, worked out by hand."""

import numpy as np
import pytest

from headwise.study.measures import NUM_POINTS, learning_curve, measures, smoothed


def test_the_smoothed_curve_begins_with_the_first_episode():
    # 10, then 0.95 * 10 + 0.05 * 30 = 11, then 0.95 * 11 + 0.05 * -9 = 10
    assert smoothed(np.array([10.0, 30.0, -9.0])) == pytest.approx([10.0, 11.0, 10.0])


def test_scalars():
    step = np.array([5, 10, 15])
    found = measures(step, np.array([10.0, 30.0, -9.0]), (10.5, 50.0))
    assert found == pytest.approx(
        {
            "episodes": 3,
            "final_return": 31 / 3,
            "final_smoothed": 31 / 3,
            "auc": 31 / 3,
            "steps_to_10.5": 10,
            "steps_to_50": None,
        }
    )


def test_only_the_last_episodes_are_final():
    returns = np.concatenate([np.full(300, -1.0), np.full(100, 5.0)])
    found = measures(np.arange(400), returns)
    assert found["final_return"] == 5.0
    # After k episodes of 5 the smoothed return is 5 - 6 * 0.95**k; the last 50 have k = 51 to 100.
    tail = sum(5.0 - 6.0 * 0.95**k for k in range(51, 101)) / 50
    assert found["final_smoothed"] == pytest.approx(tail)


def test_nothing_to_measure():
    found = measures(np.array([], dtype=np.int64), np.array([]), (1.0,))
    assert found == {
        "episodes": 0,
        "final_return": None,
        "final_smoothed": None,
        "auc": None,
        "steps_to_1": None,
    }


def curve(step, returns, steps=100):
    return learning_curve(np.array(step, dtype=np.int64), np.array(returns, dtype=float), steps)


def test_a_curve_is_the_mean_of_the_episodes_that_ended_in_each_share():
    # 100 steps in 50 shares of two: steps 1 and 2 are the first, 99 and 100 the last
    found = curve([1, 2, 3, 99, 100], [0, 4, 7, 10, 20])
    assert found.shape == (NUM_POINTS,)
    assert found[0] == 2.0
    assert found[1] == 7.0
    assert found[-1] == 15.0
    assert found[25] == pytest.approx(7 + 8 * 24 / 48)  # nothing ended in between: a straight line


def test_a_curve_without_episodes_and_with_steps_beyond_the_end():
    assert np.isnan(curve([], [])).all()
    found = curve([50, 104], [3, 99])
    assert (found[:25] == 3.0).all()
    assert found[-1] == 99.0
