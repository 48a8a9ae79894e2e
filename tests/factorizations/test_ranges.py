"""Distributions over Range heads against numerical integration."""

import itertools

import numpy as np
import pytest
import torch
from cases import CONTINUOUS, HYBRID, make, observations
from scipy import integrate, stats

from headwise.factorizations.parts.heads import Heads
from headwise.factorizations.parts.layout import Layout
from headwise.factorizations.parts.ranges import (
    BetaUnit,
    ClippedGaussian,
    SquashedGaussian,
    bounded_log_std,
    log_tanh_slope,
    make_range,
)
from headwise.population import Keys, Stream

FIRST = torch.tensor([-2.5, -0.4, 0.0, 0.3, 1.7])
SECOND = torch.tensor([-1.0, 0.5, 0.0, -2.5, 0.9])
SHAPES = torch.tensor([1.0, 1.3, 2.0, 30.0, 150.0]), torch.tensor([1.0, 4.0, 1.0, 12.0, 180.0])
KINDS = {
    "squashed": SquashedGaussian(FIRST, SECOND),
    "clipped": ClippedGaussian(FIRST, SECOND),
    "beta": BetaUnit(*SHAPES),
}


def density(kind, column, unit):
    """The density of the unit value, written down independently of the library."""
    if kind == "beta":
        a, b = (float(x[column]) for x in SHAPES)
        return stats.beta(a, b).pdf((unit + 1) / 2) / 2
    normal = stats.norm(float(FIRST[column]), float(SECOND[column].exp()))
    if kind == "clipped":
        return normal.pdf(unit)
    return normal.pdf(np.arctanh(unit)) / (1 - unit**2)


def mass(kind, column, low, high):
    """The probability of a bin, by integration; what is clipped falls into the outer bins."""
    if kind == "clipped":
        low, high = (-np.inf if low <= -1 else low), (np.inf if high >= 1 else high)
    if kind == "squashed":  # in u = atanh(x), where the ends are far away and nothing is singular
        low, high = np.arctanh(np.clip((low, high), -1 + 1e-15, 1 - 1e-15))
        normal = stats.norm(float(FIRST[column]), float(SECOND[column].exp()))
        return integrate.quad(normal.pdf, low, high, limit=200)[0]
    return integrate.quad(lambda x: density(kind, column, x), low, high, limit=200)[0]


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("bins", [1, 2, 5, 11])
def test_bin_masses_against_numerical_integration(kind, bins):
    layout = Layout(CONTINUOUS)
    masses = Heads(layout, None, KINDS[kind]).masses(bins)
    assert masses.shape == (5, bins)
    edges = np.linspace(-1, 1, bins + 1)
    expected = [
        [mass(kind, c, low, high) for low, high in itertools.pairwise(edges)] for c in range(5)
    ]
    tolerance = 3e-4 if kind == "beta" else 2e-6  # that of the quadrature
    np.testing.assert_allclose(masses.numpy(), expected, atol=tolerance)
    np.testing.assert_allclose(masses.sum(-1), np.ones(5), atol=1e-6)
    assert (masses >= -tolerance).all()


@pytest.mark.parametrize("kind", list(KINDS))
def test_log_prob_is_the_density_of_the_unit_value(kind):
    unit = np.array([-0.95, -0.3, 0.02, 0.4, 0.9])
    raw = {"squashed": np.arctanh(unit), "clipped": unit, "beta": (unit + 1) / 2}[kind]
    for column in range(5):
        found = KINDS[kind].log_prob(torch.tensor(raw, dtype=torch.float32).unsqueeze(-1))
        expected = np.log(density(kind, column, unit))
        np.testing.assert_allclose(found[:, column].numpy(), expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("kind", list(KINDS))
def test_draws_have_the_distribution_function_claimed(kind):
    distribution = KINDS[kind]
    uniform = Keys((0,)).uniform(Stream.ACT, 0, (20_000, 5, distribution.num_uniforms))[0]
    unit = distribution.to_unit(distribution.draw(uniform))
    edges = torch.linspace(-0.9, 0.9, 7)
    frequency = (unit.unsqueeze(-1) <= edges).float().mean(0)
    np.testing.assert_allclose(frequency, distribution.cdf(edges), atol=4.5 * 0.5 / 20_000**0.5)


@pytest.mark.parametrize("kind", ["clipped", "beta"])
def test_entropy_is_minus_the_mean_log_prob(kind):
    distribution = KINDS[kind]
    uniform = Keys((0,)).uniform(Stream.ACT, 1, (40_000, 5, distribution.num_uniforms))[0]
    log_prob = distribution.log_prob(distribution.draw(uniform))
    np.testing.assert_allclose(distribution.entropy(), -log_prob.mean(0), atol=0.03)


@pytest.mark.parametrize("kind", list(KINDS))
def test_kl_is_the_mean_difference_of_log_probs(kind):
    distribution = KINDS[kind]
    first, second = distribution.tensors()
    other = distribution.rebuilt(first + 0.1, second + 0.05)
    uniform = Keys((0,)).uniform(Stream.ACT, 2, (200_000, 5, distribution.num_uniforms))[0]
    raw = distribution.draw(uniform)
    estimate = (distribution.log_prob(raw) - other.log_prob(raw)).mean(0)
    np.testing.assert_allclose(distribution.kl(other), estimate, atol=0.01, rtol=0.03)
    np.testing.assert_allclose(distribution.kl(distribution), np.zeros(5), atol=1e-6)


def test_far_out_no_digit_is_lost_and_nothing_overflows():
    raw = torch.tensor([0.0, 3.0, 20.0, -20.0, 80.0])
    far = np.abs(raw.numpy().astype(np.float64))
    exact = np.log(4.0) - 2 * far - 2 * np.log1p(np.exp(-2 * far))
    np.testing.assert_allclose(log_tanh_slope(raw), exact, rtol=1e-6, atol=1e-6)
    assert torch.isfinite(KINDS["squashed"].log_prob(raw)).all()
    ends = KINDS["beta"].log_prob(torch.tensor([1e-6]))
    assert torch.isfinite(ends).all()


def test_spread_is_bounded_and_begins_at_one():
    bounds = (-3.0, 1.0)
    assert bounded_log_std(torch.tensor(100.0), *bounds) == 1.0
    assert bounded_log_std(torch.tensor(-100.0), *bounds) == -3.0
    heads = make("shared", "policy", CONTINUOUS).judge(observations(), torch.zeros(3, 5, 2)).heads
    torch.testing.assert_close(heads.ranges.log_std, torch.zeros(3, 5, 2), atol=1e-6, rtol=0)


def test_both_shapes_of_a_beta_are_above_one():
    wild = torch.tensor([-50.0, 0.0, 50.0])
    distribution = make_range("beta", wild, wild.flip(0))
    assert (torch.stack(distribution.tensors()) >= 1.0).all()


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("name", ["shared", "independent", "ar"])
def test_every_kind_works_in_a_policy(kind, name):
    policy, obs = make(name, "policy", HYBRID, range_kind=kind), observations()
    uniform = Keys((0, 1, 2)).uniform(Stream.ACT, 0, (5, policy.num_uniforms))
    raw, judged = policy.sample(obs, uniform)
    assert (policy.to_unit(raw)[..., [0, 2]].abs() <= 1).all()
    torch.testing.assert_close(policy.judge(obs, raw.detach()).log_prob, judged.log_prob)
    judged.log_prob.sum().backward()
    assert all(p.grad is not None for p in policy.parameters())
