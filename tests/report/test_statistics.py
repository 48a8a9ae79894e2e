"""The statistics, against scipy, against rliable (kept numbers), and against arithmetic."""

import csv
import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from headwise.errors import ConfigError
from headwise.report import statistics as st

ROOT = Path(__file__).parents[2]
REFERENCE = json.loads(Path(__file__).with_name("rliable_reference.json").read_text())
OURS, THEIRS, RLIABLE = REFERENCE["ours"], REFERENCE["theirs"], REFERENCE["rliable"]


def rows_of(name):
    with (ROOT / "results" / name).open(newline="") as file:
        return list(csv.DictReader(file))


def methods_of_the_sweep():
    """The scores of every method by task and view."""
    cells = {}
    for row in rows_of("paper.csv"):
        method = cells.setdefault((row["algorithm"], row["factorization"]), {})
        method.setdefault((row["environment"], row["view"]), []).append(float(row["score"]))
    return cells


def generator(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("name", ["iqm", "mean", "median", "optimality_gap"])
def test_aggregates_are_those_of_rliable_and_their_intervals_a_little_wider(name):
    value, low, high = st.estimate(OURS, getattr(st, name), generator(), samples=20_000)
    assert value == pytest.approx(RLIABLE[name][0], abs=1e-12)
    # By sqrt(7 / 6), as samples of seven runs spread less than what they were drawn from, and by
    # Student's 2.064 for 24 degrees of freedom over the normal 1.96; of the mean 2.159 for 13.1, as
    # its tasks spread unequally. The median is not smooth.
    student = {"mean": 2.159, "optimality_gap": 2.159}.get(name, 2.064)
    wider = (high - low) / (RLIABLE[name][2] - RLIABLE[name][1])
    assert wider == pytest.approx(
        np.sqrt(7 / 6) * student / 1.96, rel=0.2 if name == "median" else 0.04
    )


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


@pytest.mark.parametrize(("tasks", "seeds"), [(1, 3), (1, 5), (3, 3), (15, 5)])
def test_an_iqm_lies_in_its_interval_as_often_as_promised(tasks, seeds):
    rng, hits = generator(1), 0
    for _ in range(500):
        _, low, high = st.estimate(rng.normal(size=(tasks, seeds)), st.iqm, rng, samples=200)
        hits += low < 0.0 < high
    assert 0.925 <= hits / 500 <= 0.99  # percentiles would say 0.73, 0.90, 0.84 and 0.93


@pytest.mark.parametrize(
    ("spreads", "seeds"), [((1, 1, 1), 3), ((1, 0.05, 0.05), 3), ((1, *[0.02] * 9), 5)]
)
def test_a_mean_lies_in_its_interval_however_unequally_tasks_spread(spreads, seeds):
    """The degrees of freedom of all tasks together would cover 0.95, 0.86 and 0.89."""
    rng, hits, rounds = generator(1), 0, 1000
    for _ in range(rounds):
        scores = np.array(spreads)[:, None] * rng.normal(size=(len(spreads), seeds))
        _, low, high = st.estimate(scores, st.mean, rng, samples=200)
        hits += low < 0.0 < high
    assert 0.93 <= hits / rounds <= 0.985


def test_an_iqm_lies_in_its_interval_where_the_task_that_spreads_is_in_the_middle():
    """The degrees of freedom of all tasks together would cover 0.88."""
    rng, hits, rounds = generator(1), 0, 1000
    for _ in range(rounds):
        scores = np.array([[-9], [0], [9]]) + [[0.01], [1], [0.01]] * rng.normal(size=(3, 3))
        _, low, high = st.estimate(scores, st.iqm, rng, samples=200)
        hits += low < 0.0 < high
    assert 0.93 <= hits / rounds <= 0.97


def test_iqms_of_our_own_sweep_lie_in_their_intervals_about_as_often_as_promised():
    """Normal runs with the means and spreads of every method; all tasks together cover 0.93."""
    cells = methods_of_the_sweep()
    rng, rounds, shares = generator(1), 100, []
    for tasks in cells.values():
        means, spreads = (f([*tasks.values()], axis=1)[:, None] for f in (np.mean, np.std))
        truth = st.iqm([*(means + spreads * rng.normal(size=(1000, 1, 5))).swapaxes(0, 1)]).mean()
        hits = 0
        for _ in range(rounds):
            scores = means + spreads * rng.normal(size=(len(tasks), 5))
            _, low, high = st.estimate(scores, st.iqm, rng, samples=100)
            hits += low <= truth <= high
        shares.append(hits / rounds)
    assert len(shares) == 17
    assert 0.935 <= np.mean(shares) <= 0.965
    assert rounds * min(shares) >= stats.binom.ppf(1e-3, rounds, 0.94)


def test_any_mean_has_the_freedom_of_a_mean():
    scores = [[1.0, 2, 3], [5.0, 5, 5]]
    mine = st.estimate(scores, lambda strata: st.mean(strata) * 1.0, generator())
    assert mine == pytest.approx(st.estimate(scores, st.mean, generator()))


def test_the_interval_of_a_mean_by_hand():
    # Means 2 and 5; what the first adds to the variance of the mean is 1/3 / 4, the second nothing:
    # two degrees of freedom and not four, 3.5 +- 4.303 * sqrt(1 / 12).
    found = st.estimate([[1, 2, 3], [5, 5, 5]], st.mean, generator(), samples=100_000)
    assert found == pytest.approx((3.5, 3.5 - 1.242, 3.5 + 1.242), abs=0.02)


@pytest.mark.parametrize("score", [1.1, 0.1, 0.7, -1e9 / 7, 3e-7, 0.0])
@pytest.mark.parametrize(("n", "m"), [(3, 7), (3, 5), (6, 5), (2, 2), (5, 100)])
def test_sides_that_never_vary_and_agree_do_not_differ(score, n, m):
    """1.1 three times and seven times: the means are apart by their last digit."""
    found = st.welch([score] * n, [score] * m)
    assert (found.difference, found.low, found.high) == (0.0, 0.0, 0.0)
    assert (found.t, found.p, found.d) == (0.0, 1.0, 0.0)
    assert st.effect_size(*unpaired([score] * n, [score] * m)) == (0.0, 0.0, 0.0)
    again = st.paired([score + 0.3] * n, [0.3 + score - 0.1 + 0.1] * n)
    assert (again.difference, again.p) == (0.0, 1.0)


def test_what_differs_by_little_differs():
    far = st.welch([1.0, 1.0 + 1e-12], [1.0 + 1e-10, 1.0 + 1.01e-10])
    assert far.difference == pytest.approx(-1e-10, rel=0.01)
    assert far.p < 0.01
    assert st.welch([1.1] * 3, [1.2] * 7).p == 0.0  # nothing varies: certain


def test_a_single_run_has_no_interval():
    found = st.estimate([[1.0, 2.0], [3.0]], st.mean, generator())
    assert (found.value, np.isnan(found.low), str(found)) == (2.25, True, "2.25 (no interval)")
    assert np.isnan(st.probability_of_improvement([1.0], [0.0, 2.0], generator()).low)
    assert np.isnan(st.performance_profile([[1.0]], [0.0, 1.0], generator()).high).all()
    assert st.contrast([[1.0], [2.0, 3.0]]).interval() == (-np.inf, np.inf)


def test_the_rule_of_pairs_by_hand():
    seeds = [0, 1, 2]
    ours, theirs = st.sample([2, 4, 9], seeds), st.sample([1, 2, 3], seeds)
    oracle = stats.ttest_rel([2, 4, 9], [1, 2, 3])
    assert st.difference(ours, theirs).p == pytest.approx(oracle.pvalue)
    assert st.compare(ours, theirs).p == pytest.approx(oracle.pvalue)
    # Of other seeds, or some of them only, it is Welch's.
    other = st.sample([1, 2, 3], [1, 2, 3])
    oracle = stats.ttest_ind([2, 4, 9], [1, 2, 3], equal_var=False)
    assert st.compare(ours, other).p == pytest.approx(oracle.pvalue)
    assert not st.share_seeds(ours, other)
    # By seed, whatever the order; runs without a number are left out.
    mixed = st.sample([3, 1, np.nan, 2], [2, 0, 7, 1])
    assert (mixed.values.tolist(), mixed.seeds.tolist()) == ([1, 2, 3], seeds)
    # Groups are sets of their own: two tasks with differences 1 2 3 and 0 0 3.
    groups = [
        [(0.5, st.sample(values, seeds)), (-0.5, st.sample([1, 2, 3], seeds))]
        for values in ([2, 4, 6], [1, 2, 6])
    ]
    np.testing.assert_allclose(st.by_seed(groups), st.contrast([[1, 2, 3], [0, 0, 3]]))


def test_seeds_to_settle_are_pairs_where_there_is_one_task():
    ours, theirs = (st.sample(generator(n).normal(size=8), range(8)) for n in (1, 2))
    found = st.difference(ours, theirs)
    sd = float((ours.values - theirs.values).std(ddof=1))
    assert st.seeds_to_settle(found, 8) == st.pairs_needed(float(found.value), sd)
    both = st.by_seed([[(0.5, ours), (-0.5, theirs)]] * 2)  # two tasks, as far apart
    assert both.df == pytest.approx(14)
    assert st.seeds_to_settle(both, 8) < st.seeds_to_settle(found, 8)


def test_a_contrast_of_two_sides_is_welchs_and_of_one_students():
    ours, theirs = generator(3).normal(size=7), generator(4).normal(size=5)
    found, oracle = st.contrast([ours, theirs], [1, -1]), st.welch(ours, theirs)
    assert found.interval() == (oracle.low, oracle.high)
    bounds = stats.ttest_1samp(ours, 0.0).confidence_interval()
    assert st.contrast([ours]).interval() == pytest.approx((bounds.low, bounds.high))
    # two tasks of one method: means 2 and 5, variances of the means 1/3 and 0, halved twice over
    found = st.contrast([[1, 2, 3], [5, 5, 5]])
    assert (found.value, found.error, found.df) == pytest.approx((3.5, np.sqrt(1 / 12), 2.0))


SWEPT = [
    tuple(np.std(cells[task], ddof=1) for cells in map(methods_of_the_sweep().get,
                                                       (("ppo", "vdn"), ("ppo", "shared"))))
    for task in methods_of_the_sweep()["ppo", "vdn"]
]  # fmt: skip
"""The spreads of two methods of our sweep on each task."""
TASKS = 5
SPREADS = np.exp(generator(9).normal(-2.5, 1.0, (4, TASKS)))
"""Of four methods on five tasks: unequal by factors, as in our sweep."""


@pytest.mark.parametrize("apart", [0.0, 0.03, 0.3])
def test_leads_and_spreads_lie_in_their_intervals_as_often_as_promised(apart):
    """Five seeds of each on each task; percentiles of bootstrap samples cover 0.87 to 0.92."""
    truth, rng, rounds = apart * np.arange(4), generator(2), 800
    names = {"gap": 0.0 - truth[1], "lead": -truth[3], "spread": truth[3], "ratio": 1.0}
    hits = dict.fromkeys(names, 0)
    pairs = list(combinations(range(4), 2))
    for _ in range(rounds):
        runs = [*(truth[:, None, None] + SPREADS[..., None] * rng.normal(size=(4, TASKS, 5)))]
        gaps = [
            st.contrast([*runs[i], *runs[j]], [1 / TASKS] * TASKS + [-1 / TASKS] * TASKS)
            for i, j in pairs
        ]
        found = {
            "gap": gaps[0].interval(),
            "lead": st.least(gaps[:3])[1:],
            "spread": st.widest(gaps)[1:],
            "ratio": st.quotient(gaps, [gaps[2], gaps[3]])[1:],
        }
        for name, (low, high) in found.items():
            hits[name] += low - 1e-12 <= names[name] <= high + 1e-12
    share = {name: count / rounds for name, count in hits.items()}
    assert 0.93 <= share["gap"] <= 0.975
    assert min(share["lead"], share["spread"]) >= 0.94
    assert apart == 0.0 or share["ratio"] >= 0.94  # without a spread there is no ratio of it


def unpaired(ours, theirs):
    """Two samples of other seeds."""
    return st.sample(ours, range(len(ours))), st.sample(theirs, range(100, 100 + len(theirs)))


@pytest.mark.parametrize("r", [0.0, 0.6])
def test_pairs_by_seed_differ_by_chance_as_often_as_promised(r):
    """At the spreads of the decoupler (16 seeds) and of our sweep (5 seeds on 15 tasks).

    Nothing differs; what shares a seed goes up and down together by r. Welch's test of r = 0.6
    would find 0.004 and not 0.05.
    """
    rng, rounds = generator(3), 1500
    for spreads, seeds in (([(3.6, 2.6)], 16), (SWEPT, 5)):
        names, found = np.arange(seeds), []
        for _ in range(rounds):
            z = rng.normal(size=(3, len(spreads), seeds))
            sides = np.sqrt(r) * z[2] + np.sqrt(1 - r) * z[:2]
            groups = [
                [(sign, st.Sample(sd * side[task], names))
                 for sign, sd, side in zip((1, -1), pair, sides, strict=True)]
                for task, pair in enumerate(spreads)
            ]  # fmt: skip
            found.append(float(st.by_seed(groups).p))
        assert np.mean(np.array(found) < 0.05) == pytest.approx(0.05, abs=0.015)
        assert np.mean(np.array(found) < 0.005) <= 0.01  # where Holm's correction looks


@pytest.mark.parametrize("r", [0.0, 0.6])
def test_sizes_of_effects_of_pairs_lie_in_their_intervals_as_often_as_promised(r):
    """Unpaired they would cover 0.99 and 0.98 of r = 0.6, too wide."""
    rng, rounds, seeds = generator(6), 800, np.arange(16)
    hits = np.zeros(2)
    for _ in range(rounds):
        z = rng.normal(size=(3, 16))
        ours, theirs = (
            st.Sample(mean + sd * (np.sqrt(r) * z[2] + np.sqrt(1 - r) * z[i]), seeds)
            for i, (mean, sd) in enumerate(((2.0, 2.5), (0.0, 3.6)))
        )
        for place, (found, truth) in enumerate((
            (st.effect_size(ours, theirs), 2 / np.sqrt((2.5**2 + 3.6**2) / 2)),
            (st.spread_ratio(ours, theirs), 2.5 / 3.6),
        )):  # fmt: skip
            hits[place] += found.low <= truth <= found.high
    assert (hits / rounds >= 0.93).all()
    assert (hits / rounds <= 0.975).all()


def test_the_weighting_of_the_decoupler_and_the_sweep_by_pairs():
    """What the one rule finds in our own runs that Welch's test and seeds' means did not."""
    cells = {}
    for row in rows_of("decoupler.csv"):
        if row["study"] == "decoupler_factorial":
            key = row["preset"], row["factorization"], row["estimator"]
            cells.setdefault(key, []).append(row)
    for preset, apart, together in (("as_published", 2, 11), ("sound", 1, 7)):
        found = []
        for f, estimator, metric in product(
            ("vdn", "qplex"), ("grad", "range"), ("final_return", "auc", "steps_to_50")
        ):
            ours, theirs = (
                st.sample([float(row[metric]) for row in some], [int(row["seed"]) for row in some])
                for some in (cells[preset, f, estimator], cells[preset, f, "uniform"])
            )
            found.append((st.welch(ours.values, theirs.values).p, st.compare(ours, theirs).p))
        assert (np.array(found) < 0.05).sum(axis=0).tolist() == [apart, together]


def test_sizes_of_effects_lie_in_their_intervals_as_often_as_promised():
    rng, rounds = generator(5), 800
    hits = np.zeros(2)
    for _ in range(rounds):
        ours, theirs = rng.normal(80, 3.6, 16), rng.normal(0, 9.9, 16)
        true_d = 80 / np.sqrt((3.6**2 + 9.9**2) / 2)
        for place, (found, truth) in enumerate((
            (st.effect_size(*unpaired(ours, theirs)), true_d),
            (st.spread_ratio(*unpaired(ours, theirs)), 3.6 / 9.9),
        )):  # fmt: skip
            hits[place] += found.low <= truth <= found.high
    assert (hits / rounds >= 0.93).all()
    assert (hits / rounds <= 0.97).all()


def test_sizes_of_effects_at_the_edges():
    assert st.effect_size(*unpaired([2, 3, 4], [0, 1, 2])).value == pytest.approx(2.0)
    same = unpaired([1, 2, 3], [1, 2, 3])
    assert st.effect_size(*same)[1:] == pytest.approx((-1.6, 1.6), abs=0.01)
    assert st.effect_size(same[0], same[0]) == (0, 0, 0)  # pairs that never differ
    assert st.effect_size(*unpaired([1, 1], [1, 1])) == (0, 0, 0)
    assert st.spread_ratio(*unpaired([2, 4, 6], [1, 2, 3])).value == pytest.approx(2.0)
    two = st.spread_ratio(*unpaired([1, 2], [1, 3]))
    assert two[1:] == (0.0, np.inf)  # two runs do not tell


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


@pytest.mark.parametrize(("d", "seeds"), [(0.5, 64), (0.8, 26), (1.0, 17)])
def test_seeds_needed_are_those_of_cohens_tables(d, seeds):
    assert st.seeds_needed(d, 1.0, 1.0) == seeds
    assert st.power_of_welch(seeds, d, 1.0, 1.0) >= 0.8 > st.power_of_welch(seeds - 1, d, 1.0, 1.0)


@pytest.mark.parametrize(("d", "pairs"), [(0.5, 34), (0.8, 15), (1.0, 10)])
def test_pairs_needed_are_those_of_the_non_central_t(d, pairs):
    assert st.pairs_needed(d, 1.0) == pairs
    for n in (2, pairs):
        shift, bar = d * np.sqrt(n), stats.t.isf(0.025, n - 1)
        oracle = stats.nct.sf(bar, n - 1, shift) + stats.nct.cdf(-bar, n - 1, shift)
        assert st.power_of_paired(n, d, 1.0) == pytest.approx(oracle, abs=1e-3)


@pytest.mark.parametrize(
    ("seeds", "difference", "ours", "theirs"),
    [(10, 1.5, 2.0, 0.5), (2, 3.0, 0.5, 0.5), (3, 1.0, 0.5, 0.5), (4, 2.0, 1.0, 0.2)],
)
def test_power_is_how_often_the_test_comes_out(seeds, difference, ours, theirs):
    rng = generator(8)
    first, second = (rng.normal(0.0, sd, (20_000, seeds)) for sd in (ours, theirs))
    found = st.welch(first + difference, second).p < 0.05  # of 2, 0.51, where df is taken as known
    power = st.power_of_welch(seeds, difference, ours, theirs)
    assert power == pytest.approx(found.mean(), abs=0.012)
    found = st.welch(first + difference, second).p < 0.01
    power = st.power_of_welch(seeds, difference, ours, theirs, alpha=0.01)
    assert power == pytest.approx(found.mean(), abs=0.012)


def test_a_difference_too_small_to_settle():
    assert st.seeds_needed(1e-4, 1.0, 1.0) is None
    assert st.seeds_needed(0.0, 1.0, 1.0) is None
    assert st.seeds_needed(1.0, 0.0, 0.0) == 2
    assert st.pairs_needed(0.0, 1.0) is None


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
    assert st.pairs_needed(1.0, 0.01) == 2
