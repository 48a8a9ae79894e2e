"""What the paper says of weights and variance, exactly (docs/theory.md)."""

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from exact import estimates, weights

RESULTS = Path(__file__).parents[2] / "results"
DECAY = 0.99 * 0.95  # gamma lambda of the decoupler
LATER = DECAY**2 / (1 - DECAY**2)
"""The sum of all squares of the trace's factors but the first, in an endless episode."""


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.5, 0.75, 0.9])
def test_a_head_of_less_importance_than_the_mean_may_get_more_than_its_share(alpha):
    """Proposition A.12: importances of 2.9, 6 and 0.1, whose mean is 3."""
    importance = (2.9, 6.0, 0.1)
    assert importance[0] < np.mean(importance)
    assert weights(importance, alpha)[0] > 1 / 3
    assert weights(importance, 1.0)[0] < 1 / 3  # 2.9 / 9


def test_the_counterexample_by_hand():
    # roots 1.703, 2.449, 0.316, of 4.469
    found = weights((2.9, 6.0, 0.1), 0.5)
    np.testing.assert_allclose(found, [0.381, 0.548, 0.071], atol=5e-4)
    assert found[0] ** 2 > 1 / 9


def test_where_the_proposition_is_right():
    """With alpha = 1, with two heads, and for heads below the geometric mean; never strictly."""
    rng = np.random.default_rng(0)
    for alpha in (0.25, 0.5, 1.0):
        for heads in (2, 3, 5):
            for importance in rng.exponential(size=(50, heads)) + 1e-3:
                share = weights(importance.tolist(), alpha)
                below = importance <= importance.mean()
                if alpha < 1.0 and heads > 2:
                    below = importance <= np.exp(np.log(importance).mean())
                assert (share[below] <= 1 / heads + 1e-6).all()
    assert weights((1.0, 1.0), 0.5).tolist() == [0.5, 0.5]


def test_the_variance_of_all_heads_together_is_least_with_equal_weights():
    rng = np.random.default_rng(0)
    for importance in rng.exponential(size=(100, 4)).tolist():
        assert (weights(importance) ** 2).sum() >= 1 / 4 - 1e-6
    assert (weights([1.0] * 4) ** 2).sum() == pytest.approx(1 / 4)


def ratio_of(inactive, active, later=LATER):
    """The variance of the inactive head's estimate over the active one's.

    Residuals are independent, of mean 0 and variance 1; the next states are chance, so from the
    next step on either head is the active one with probability 1/2.
    """
    ahead = later * (inactive**2 + active**2) / 2
    return (inactive**2 + ahead) / (active**2 + ahead)


def test_the_ratio_by_enumeration():
    """Three steps: every sequence of contexts and of residuals of 1 and -1."""
    inactive, active = 0.3, 0.7
    squares = {True: [], False: []}  # of head 0, by whether it is the active one
    for contexts in product((0, 1), repeat=3):
        for delta in product((-1.0, 1.0), repeat=3):
            shares = [[active, inactive] if c == 0 else [inactive, active] for c in contexts]
            first = estimates(delta, shares, DECAY)[0, 0]
            squares[contexts[0] == 0].append(first**2)
    ratio = np.mean(squares[False]) / np.mean(squares[True])
    assert ratio == pytest.approx(ratio_of(inactive, active, DECAY**2 + DECAY**4))


def test_the_law_of_squared_weights_is_not_that_of_the_estimator():
    """The law has 0 for weights that always find the active head, the estimator 0.793."""
    assert ratio_of(0.0, 1.0) == pytest.approx(0.793, abs=5e-4)
    # Mean weights of 0.279 and 0.721: the law 0.15, the estimator 0.84.
    assert pytest.approx(0.150, abs=5e-4) == (0.279 / 0.721) ** 2
    assert ratio_of(0.279, 0.721) == pytest.approx(0.843, abs=5e-4)
    # Without a trace, or with weights outside of the sum, it is the law.
    assert ratio_of(0.279, 0.721, later=0.0) == pytest.approx(0.150, abs=5e-4)


def test_weights_outside_of_the_sum_follow_the_law():
    inactive, active = 0.3, 0.7
    plain = [estimates(d, None, DECAY)[0, 0] for d in product((-1.0, 1.0), repeat=3)]
    ratio = np.var(np.multiply(plain, inactive)) / np.var(np.multiply(plain, active))
    assert ratio == pytest.approx((inactive / active) ** 2)


def runs():
    """By preset, factorization and estimator: the ratios of variances and of squared weights."""
    found = {}
    with (RESULTS / "variance_law.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            key = row["preset"], row["factorization"], row["estimator"]
            numbers = float(row["variance_ratio"]), float(row["weight_ratio"])
            found.setdefault(key, []).append(numbers)
    return {key: np.mean(values, axis=0) for key, values in found.items()}


def test_runs_are_where_the_estimator_says_and_not_where_the_law_says():
    """Weights by range, which depend on the state alone, as the derivation asks."""
    by_range = [values for (*_, estimator), values in runs().items() if estimator == "range"]
    assert len(by_range) == 4
    for seen, law in by_range:
        assert abs(seen - ratio_of(np.sqrt(law), 1.0)) < 0.04
        assert seen / law > 1.5


def test_the_page_has_the_numbers_of_the_runs():
    text = (RESULTS.parent / "docs" / "theory.md").read_text()
    for (preset, factorization, estimator), (seen, law) in runs().items():
        exact = f"{ratio_of(np.sqrt(law), 1.0):.3f}" if estimator == "range" else ""
        cells = [preset.replace("_", " "), f"{factorization.upper()} {estimator}",
                 f"{law:.3f}", exact, f"{seen:.3f}"]  # fmt: skip
        assert f"| {' | '.join(cells)} |".replace("|  |", "| |") in text
