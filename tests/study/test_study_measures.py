"""Final scalars, worked out by hand."""

import numpy as np
import pytest

from headwise.study.measures import measures, smoothed


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
