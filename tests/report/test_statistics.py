"""The statistics, against scipy, against rliable (kept numbers), and against arithmetic."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from headwise.errors import ConfigError
from headwise.report import statistics as st

REFERENCE = json.loads(Path(__file__).with_name("rliable_reference.json").read_text())
OURS, THEIRS, RLIABLE = REFERENCE["ours"], REFERENCE["theirs"], REFERENCE["rliable"]


def generator(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("name", ["iqm", "mean", "median", "optimality_gap"])
def test_aggregates_and_their_intervals_are_those_of_rliable(name):
    value, low, high = st.estimate(OURS, getattr(st, name), generator(), samples=20_000)
    assert value == pytest.approx(RLIABLE[name][0], abs=1e-12)
    assert (low, high) == pytest.approx(RLIABLE[name][1:], abs=0.003)  # both drawn by chance


def test_probability_of_improvement_is_that_of_rliable():
    value, low, high = st.probability_of_improvement(OURS, THEIRS, generator(), samples=20_000)
    assert value == pytest.approx(RLIABLE["improvement"][0], abs=1e-12)
    assert (low, high) == pytest.approx(RLIABLE["improvement"][1:], abs=0.01)
    u = [stats.mannwhitneyu(a, b).statistic / 49 for a, b in zip(OURS, THEIRS, strict=True)]
    assert value == pytest.approx(np.mean(u))


def test_performance_profiles_are_those_of_rliable():
    theirs = RLIABLE["profile"]
    ours = st.performance_profile(OURS, theirs["thresholds"], generator(), samples=20_000)
    np.testing.assert_allclose(ours.share, theirs["share"], atol=1e-12)
    np.testing.assert_allclose(ours.low, theirs["low"], atol=1 / 28 + 1e-9)  # a run is 1/28
    np.testing.assert_allclose(ours.high, theirs["high"], atol=1 / 28 + 1e-9)


def test_iqm_is_the_trimmed_mean_also_of_unequal_tasks():
    strata = [np.arange(5.0), np.array([10.0, -3.0, 7.0])]
    # sorted -3 0 1 2 3 4 7 10, two cut off either end, (1 + 2 + 3 + 4) / 4
    assert st.iqm(strata) == 2.5 == stats.trim_mean(np.concatenate(strata), 0.25)


def test_every_task_counts_alike_in_mean_and_median():
    strata = [np.array([0.0]), np.array([1.0, 1.0, 1.0]), np.array([5.0])]
    assert st.mean(strata) == 2.0
    assert st.median(strata) == 1.0
    assert st.median([np.array([0.0, 1.0, 10.0])]) == 1.0  # one task: over its runs


def test_same_generator_same_interval():
    first, again = (st.estimate(OURS, st.iqm, generator(3)) for _ in range(2))
    assert first == again
    assert first != st.estimate(OURS, st.iqm, generator(4))
    assert str(st.Estimate(1.23456, 1, 2)) == "1.235 [1, 2]"


def test_a_mean_lies_in_its_interval_as_often_as_promised():
    rng = generator(1)
    hits = 0
    for _ in range(400):
        _, low, high = st.estimate(rng.normal(size=(4, 12)), st.mean, rng, samples=400)
        hits += low < 0.0 < high
    assert 0.90 <= hits / 400 <= 0.98  # 95 % promised; the standard error is 1.1 %


@pytest.mark.parametrize("shape", [(7,), (3, 7)])
def test_welch_is_that_of_scipy(shape):
    rng = generator(5)
    ours, theirs = rng.normal(1, 2, shape), rng.normal(0, 1, (*shape[:-1], 11))
    mine = st.welch(ours, theirs)
    oracle = stats.ttest_ind(ours, theirs, axis=-1, equal_var=False)
    np.testing.assert_allclose(mine.t, oracle.statistic)
    np.testing.assert_allclose(mine.p, oracle.pvalue)
    np.testing.assert_allclose(mine.df, oracle.df)
    bounds = oracle.confidence_interval()
    np.testing.assert_allclose([mine.low, mine.high], [bounds.low, bounds.high])


def test_paired_is_that_of_scipy():
    ours, theirs = generator(6).normal([[0.5], [0.0]], size=(2, 9))
    mine, oracle = st.paired(ours, theirs), stats.ttest_rel(ours, theirs)
    assert mine.t == pytest.approx(oracle.statistic)
    assert mine.p == pytest.approx(oracle.pvalue)
    bounds = oracle.confidence_interval()
    assert (mine.low, mine.high) == pytest.approx((bounds.low, bounds.high))


def test_cohens_d_by_hand():
    # means 3 and 1, both variances 1, pooled 1: d = 2
    assert st.cohens_d([2, 3, 4], [0, 1, 2]) == pytest.approx(2.0)
    # with equal n, d = t sqrt(2 / n): the paper's t of 2.88 with 16 seeds is its d of 1.02
    x, y = generator(2).normal(size=(2, 16))
    assert st.welch(x, y).t * np.sqrt(2 / 16) == pytest.approx(float(st.cohens_d(x, y)))
    assert round(2.88 * np.sqrt(2 / 16), 2) == 1.02


def test_sides_that_never_vary():
    same, apart = st.welch([1, 1], [1, 1]), st.welch([2, 2], [1, 1])
    assert (same.t, same.p, same.d) == (0, 1, 0)
    assert (apart.t, apart.p, apart.low) == (np.inf, 0, 1)


def test_holm_by_hand():
    # sorted .01 .03 .04, times 3 2 1: .03 .06 .04, never falling: .03 .06 .06
    np.testing.assert_allclose(st.holm([0.04, 0.01, 0.03]), [0.06, 0.03, 0.06])
    np.testing.assert_allclose(st.holm([0.9, 0.8]), [1.0, 1.0])


def test_holm_leaves_four_of_the_papers_twelve_comparisons():
    t = [2.88, 2.22, -2.61, 2.19, 1.28, -0.82, 5.46, 3.50, -2.80, 2.37, 3.40, -3.62]
    p = 2 * stats.t.sf(np.abs(t), 30)
    assert (p < 0.05).sum() == 10
    assert (st.holm(p) < 0.05).sum() == 4


@pytest.mark.parametrize(("d", "seeds"), [(0.5, 64), (0.8, 26), (1.0, 17), (1.2, 12)])
def test_seeds_needed_are_those_of_cohens_tables(d, seeds):
    assert st.seeds_needed(d, 1.0, 1.0) == seeds
    assert st.power_of_welch(seeds, d, 1.0, 1.0) >= 0.8 > st.power_of_welch(seeds - 1, d, 1.0, 1.0)


def test_power_is_how_often_the_test_comes_out():
    rng = generator(8)
    found = st.welch(rng.normal(1.5, 2.0, (4000, 10)), rng.normal(0.0, 0.5, (4000, 10))).p < 0.05
    assert st.power_of_welch(10, 1.5, 2.0, 0.5) == pytest.approx(found.mean(), abs=0.025)


def test_a_difference_too_small_to_settle():
    assert st.seeds_needed(1e-4, 1.0, 1.0) is None
    assert st.seeds_needed(0.0, 1.0, 1.0) is None
    assert st.seeds_needed(1.0, 0.0, 0.0) == 2


def test_scales():
    np.testing.assert_allclose(st.min_max([2, 4, 3]), [0, 1, 0.5])
    np.testing.assert_allclose(st.min_max([2, 4], low=0, high=8), [0.25, 0.5])
    np.testing.assert_allclose(st.min_max([5, 5]), [0, 0])
    np.testing.assert_allclose(
        st.by_reference([-67.964, 100], "ContextualDecoupler", view="discrete"), [0, 1]
    )
    assert st.by_reference([1.0], "MyRobot-v0") is None


@pytest.mark.parametrize("scores", [[], [[]], [1.0, np.nan], [[1.0], [np.inf]], [[[1.0]]]])
def test_bad_scores_are_refused(scores):
    with pytest.raises(ConfigError, match="scores"):
        st.estimate(scores, st.iqm, generator())


def test_bad_comparisons_are_refused():
    with pytest.raises(ConfigError, match="at least two runs"):
        st.welch([1.0], [1.0, 2.0])
    with pytest.raises(ConfigError, match="as many runs"):
        st.paired([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(ConfigError, match="same tasks"):
        st.probability_of_improvement([[1.0]], [[1.0], [2.0]], generator())
    with pytest.raises(ConfigError, match="between 0 and 1"):
        st.estimate(OURS, st.iqm, generator(), confidence=95)


def test_power_of_a_huge_difference_does_not_break_down():
    powers = [st.power_of_welch(n, 1.0, 0.01, 0.02) for n in range(2, 9)]
    assert powers == sorted(powers)
    assert st.seeds_needed(1.0, 0.01, 0.02) == 2
    # with two runs a side of equal spread df is 2: scipy's non-central t is fine at this size
    oracle = stats.nct.sf(stats.t.isf(0.025, 2), 2, 3.0) + stats.nct.cdf(-4.302652, 2, 3.0)
    assert st.power_of_welch(2, 3.0, 1.0, 1.0) == pytest.approx(oracle, abs=1e-3)
