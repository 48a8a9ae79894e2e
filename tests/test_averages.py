"""The interquartile mean, and intervals without SciPy that are as SciPy has them."""

import math

import numpy as np
import pytest
from scipy import special

from headwise.averages import bootstrap_error, interquartile_mean, iqm_interval, student_quantile


def test_the_interquartile_mean_leaves_out_a_quarter_on_each_side():
    assert interquartile_mean(np.array([0.0, 1, 2, 3, 100])) == 2.0  # of 1, 2, 3
    assert interquartile_mean(np.array([0.0, 1, 2, 3, 4, 5, 6, 700])) == 3.5  # of 2, 3, 4, 5
    assert interquartile_mean(np.array([[1.0, 3], [5, 5]])).tolist() == [2, 5]  # too few to cut


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_quantiles_are_those_of_scipy(confidence):
    for freedom in [*range(1, 41), 99, 100, 2000]:
        exact = special.stdtrit(freedom, (1.0 + confidence) / 2.0)
        assert student_quantile(freedom, confidence) == pytest.approx(exact, rel=1e-10)


def test_quantiles_that_stand_in_every_table():
    assert [round(student_quantile(n), 3) for n in (1, 2, 4, 30)] == [12.706, 4.303, 2.776, 2.042]
    assert student_quantile(1, 0.5) == pytest.approx(1.0)  # half of Cauchy's is within 1


def test_the_error_of_a_mean_is_the_one_of_the_textbook():
    runs = np.array([1.0, 2.0, 4.0, 9.0])  # mean 4, variance (9 + 4 + 0 + 25) / 3
    rng = np.random.default_rng(0)
    error = bootstrap_error([runs], lambda x: x[0].mean(axis=-1), rng, samples=100_000)
    assert error == pytest.approx(math.sqrt(38 / 3 / 4), rel=0.01)


def test_the_interval_of_three_runs_is_students_of_their_mean():
    low, high = iqm_interval(np.array([1.0, 2.0, 6.0]), np.random.default_rng(0))
    reach = 4.303 * math.sqrt(7 / 3)  # variance (4 + 1 + 9) / 2
    assert (low + high) / 2 == pytest.approx(3.0)
    assert (high - low) / 2 == pytest.approx(reach, rel=0.05)


def test_a_single_run_has_no_interval():
    assert np.isnan(iqm_interval(np.ones(1), np.random.default_rng(0))).all()
