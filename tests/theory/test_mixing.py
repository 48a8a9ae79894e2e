"""What the paper says of PPO-MIX, of mixers and of centering, exactly (docs/theory.md)."""

import math

import numpy as np
import pytest
import torch

from headwise.ops.functions import elu

HALF = (0.5, 0.5)
CHANCES, FIRST = (0.25, 0.75), (3.0, -1.0)  # head 1: its policy and centered advantages
SECOND = (1.0, -1.0)  # head 2, each with 1/2


def outcomes():
    """Every joint action: its chance, the residual of a critic that is right, head 1's share.

    Shares are first-order (`grad`), of a mixer whose slope is 1: |A_1| / (|A_1| + |A_2|).
    """
    for i, a in enumerate(FIRST):
        for b in SECOND:
            yield CHANCES[i] * 0.5, i, a + b, abs(a) / (abs(a) + abs(b))


def mean(of):
    return sum(p * of(i, delta, w) for p, i, delta, w in outcomes())


def test_weights_that_see_the_action_have_a_covariance_with_the_residual():
    """Equation 9: the mean of the residual is 0, so the whole mean of the product is covariance.

    It is 1/4 * 3/4 * 3 - 3/4 * 1/2 * 1 = 3/16, where the residual alone has 0.
    """
    assert mean(lambda i, delta, w: delta) == 0.0
    product, apart = mean(lambda i, d, w: w * d), mean(lambda i, d, w: w) * 0.0
    assert product - apart == pytest.approx(3 / 16)


def test_such_weights_make_of_a_baseline_a_bias_and_not_a_variance():
    """A residual of 1, whatever is done: its gradient is 0, and 3/64 with weights of the action."""

    def score(i):  # of the logit of head 1's first option, p = 1/4
        return (1.0 if i == 0 else 0.0) - CHANCES[0]

    assert mean(lambda i, d, w: score(i)) == 0.0
    assert mean(lambda i, d, w: w * score(i)) == pytest.approx(3 / 64)


def test_normalized_weights_do_sum_to_the_plain_estimate():
    """The text says they do not, as slopes of a mixer do not sum to 1; equation 8 divides by it."""
    slopes, advantages = np.array([0.3, 2.5]), np.array([1.2, -0.7])
    share = slopes * advantages / (slopes * advantages).sum()
    assert slopes.sum() != 1.0
    assert share.sum() == pytest.approx(1.0)


def test_signed_weights_have_no_bound():
    """Equation 8 as printed, of credits that nearly cancel; by size they are within 0 and 1."""
    credit = np.array([1.0, -0.999])
    np.testing.assert_allclose(credit / credit.sum(), [1000.0, -999.0])
    np.testing.assert_allclose(np.abs(credit) / np.abs(credit).sum(), [0.50025, 0.49975], atol=1e-5)


def mixture(advantages, first, second):
    """f(A) = ELU(A |W1|) |W2|, the paper's mixer."""
    return elu(advantages @ first.abs()) @ second.abs()


def test_the_slope_of_a_mixer_at_zero_is_not_zero():
    """A weight of the state alone need not degenerate: only the slope times A = 0 does."""
    first, second = torch.tensor([[1.0, -2.0], [0.5, 3.0]]), torch.tensor([2.0, -1.0])
    at = torch.zeros(2, requires_grad=True)
    (slope,) = torch.autograd.grad(mixture(at, first, second), at)
    assert slope.tolist() == [4.0, 4.0]  # 1*2 + 2*1, 0.5*2 + 3*1
    assert (slope * at).tolist() == [0.0, 0.0]


def test_centered_advantages_do_not_make_v_the_value_under_a_mixer():
    """One head, A = 2 and -2 with 1/2 each, unit weights: E[f] = (2 + exp(-2) - 1) / 2."""
    one = torch.ones(1, 1)
    found = [mixture(torch.tensor([a]), one, torch.ones(1)).item() for a in (2.0, -2.0)]
    assert np.dot(HALF, found) == pytest.approx((1 + math.exp(-2)) / 2, abs=1e-6)
    assert np.dot(HALF, found) == pytest.approx(0.568, abs=5e-4)


def test_max_centering_makes_v_the_value_of_the_best_joint_action():
    """Appendix B.2: f(0) = 0 without a bias, and nothing is above it."""
    rng = torch.Generator().manual_seed(0)
    first, second = torch.randn(3, 4, generator=rng), torch.randn(4, generator=rng)
    assert mixture(torch.zeros(3), first, second).item() == 0.0
    for _ in range(100):
        worse = -torch.rand(3, generator=rng)
        assert mixture(worse, first, second).item() <= 0.0


def test_two_wrong_options_never_cost_more_than_both_alone():
    """Max-centered advantages are at ELU's exponential, where (e^x - 1) (e^y - 1) >= 0."""
    rng = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, 4, generator=rng), torch.randn(4, generator=rng)
    for _ in range(100):
        a, b = (-3.0 * torch.rand(2, generator=rng)).tolist()
        both, one, other = (
            mixture(torch.tensor(x), first, second).item() for x in ([a, b], [a, 0.0], [0.0, b])
        )
        assert both >= one + other - 1e-5


def test_max_centering_is_not_the_value_of_soft_actor_critic():
    """Appendix B.3: with two options that are alike the soft value is V + alpha log 2, not V."""
    alpha, centered = 0.2, np.array([0.0, 0.0])
    above = alpha * np.log(np.exp(centered / alpha).sum())
    assert above == pytest.approx(0.1386, abs=1e-4)
