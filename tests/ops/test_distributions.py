"""Distributions of heads against numerical integration, by hand, and where numbers are extreme."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from headwise import ActionSpec, Choice, Range, View
from headwise.heads.layout import Layout
from headwise.ops import HeadTable
from headwise.ops.distributions import Distribution, log_tanh_slope, pick, to_unit
from headwise.population import Keys, Stream
from headwise.spaces import Condition

FIRST = torch.tensor([-2.5, -0.4, 0.0, 0.3, 1.7])
SECOND = torch.tensor([-1.0, 0.5, 0.0, -2.5, 0.9])
SHAPES = torch.tensor([1.0, 1.3, 2.0, 30.0, 150.0]), torch.tensor([1.0, 4.0, 1.0, 12.0, 180.0])
KINDS = ("squashed", "clipped", "beta")
PARAMETERS = ActionSpec(
    ("kind", "power", "gear", "angle"),
    (Choice(3), Range(-1, 1), Choice(2), Range(0, 5)),
    (None, Condition(0, 0, 1), Condition(0, 1, 2), Condition(0, 1, 3)),
)


def of_numbers(kind, first, second, conditions=None):
    """Continuous heads with these parameters, (1, 1, 1, C)."""
    count = len(first)
    table = HeadTable(
        [0] * count, conditions or [None] * count, [(0, 2 * c) for c in range(count)],
        kind=kind, state_std=True,
    )  # fmt: skip
    return Distribution.kept(table, torch.cat([first, second]).view(1, 1, 1, -1))


def five(kind):
    return of_numbers(kind, *(SHAPES if kind == "beta" else (FIRST, SECOND)))


def drawn(heads, rows, step):
    """Raw and unit actions (rows, C)."""
    each = heads.table.num_uniforms
    uniform = Keys((0,)).uniform(Stream.ACT, step, (1, rows, each))
    wide = Distribution.kept(heads.table, heads.parameters().expand(1, 1, rows, -1))
    raw = wide.sample(uniform)
    return raw, to_unit(heads.table, raw)[0, 0]


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bins", [1, 2, 5, 11])
def test_bin_probabilities_against_numerical_integration(kind, bins):
    found = five(kind).bin_probs(bins)[0, 0, 0]
    assert found.shape == (5, bins)
    edges = np.linspace(-1, 1, bins + 1)
    expected = [
        [mass(kind, c, low, high) for low, high in itertools.pairwise(edges)] for c in range(5)
    ]
    tolerance = 3e-4 if kind == "beta" else 2e-6  # that of the quadrature
    np.testing.assert_allclose(found.numpy(), expected, atol=tolerance)
    np.testing.assert_allclose(found.sum(-1), np.ones(5), atol=1e-6)
    assert (found >= -tolerance).all()


@pytest.mark.parametrize("kind", KINDS)
def test_log_prob_is_the_density_of_the_unit_value(kind):
    unit = np.array([-0.95, -0.3, 0.02, 0.4, 0.9])
    raw = {"squashed": np.arctanh(unit), "clipped": unit, "beta": (unit + 1) / 2}[kind]
    given = torch.tensor(raw, dtype=torch.float32).view(1, 1, 5, 1).expand(1, 1, 5, 5)
    found = five(kind).log_prob(given)[0, 0]
    for column in range(5):
        expected = np.log(density(kind, column, unit))
        np.testing.assert_allclose(found[:, column].numpy(), expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_distribution_function_claimed(kind):
    heads = five(kind)
    _, unit = drawn(heads, 20_000, 0)
    edges = torch.linspace(-0.9, 0.9, 7)
    frequency = (unit.unsqueeze(-1) <= edges).float().mean(0)
    expected = heads.cdf(edges)[0, 0, 0]
    np.testing.assert_allclose(frequency, expected, atol=4.5 * 0.5 / 20_000**0.5)


@pytest.mark.parametrize("kind", ["clipped", "beta"])
def test_entropy_is_minus_the_mean_log_prob(kind):
    heads = five(kind)
    raw, _ = drawn(heads, 40_000, 1)
    expected = -heads.log_prob(raw)[0, 0].mean(0)
    np.testing.assert_allclose(heads.entropy()[0, 0, 0], expected, atol=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_kl_is_the_mean_difference_of_log_probs(kind):
    heads = five(kind)
    first, second = heads.first.flatten(), heads.second.flatten()
    other = of_numbers(kind, first + 0.1, second + 0.05)
    raw, _ = drawn(heads, 200_000, 2)
    estimate = (heads.log_prob(raw) - other.log_prob(raw))[0, 0].mean(0)
    np.testing.assert_allclose(heads.kl(other)[0, 0, 0], estimate, atol=0.01, rtol=0.03)
    np.testing.assert_allclose(heads.kl(heads)[0, 0, 0], np.zeros(5), atol=1e-6)


def test_far_out_no_digit_is_lost_and_nothing_overflows():
    raw = torch.tensor([0.0, 3.0, 20.0, -20.0, 80.0])
    far = np.abs(raw.numpy().astype(np.float64))
    exact = np.log(4.0) - 2 * far - 2 * np.log1p(np.exp(-2 * far))
    np.testing.assert_allclose(log_tanh_slope(raw), exact, rtol=1e-6, atol=1e-6)
    assert torch.isfinite(five("squashed").log_prob(raw.view(1, 1, 1, 5))).all()
    for end in (1e-6, 1.0 - 1e-6):
        assert torch.isfinite(five("beta").log_prob(torch.full((1, 1, 1, 5), end))).all()


def test_a_standard_deviation_is_bounded():
    table = HeadTable([0], [None], [(0, 0)], state_std=True, log_std=(-3.0, 1.0))
    y = torch.tensor([[0.0, 100.0], [0.0, -100.0], [0.0, 0.0]]).view(1, 1, 3, 2)
    assert Distribution(table, y).second.flatten().tolist() == [1.0, -3.0, -1.0]


def test_both_shapes_of_a_beta_are_above_one():
    table = HeadTable([0], [None], [(0, 0)], kind="beta", state_std=True)
    y = torch.tensor([[-50.0, 50.0], [0.0, 0.0], [50.0, -50.0]]).view(1, 1, 3, 2)
    heads = Distribution(table, y)
    assert (heads.first >= 1.0).all()
    assert (heads.second >= 1.0).all()
    assert math.isclose(heads.first[0, 0, 1, 0], 1.0 + math.log(2.0), rel_tol=1e-6)


def test_the_mode_of_a_beta_is_its_peak_and_the_center_where_it_is_flat():
    first, second = torch.tensor([1.0, 3.0, 1.0]), torch.tensor([1.0, 2.0, 4.0])
    heads = of_numbers("beta", first, second)
    mode = heads.mode()
    torch.testing.assert_close(mode.flatten(), torch.tensor([0.5, 2.0 / 3.0, 0.0]))
    assert to_unit(heads.table, mode).flatten()[0] == 0.0


def test_constants_of_a_distribution_function_are_made_once():
    """Captured code may not copy from the host, and to make them costs more than to use them."""
    from headwise.ops.functions import constant

    heads = five("beta")
    heads.bin_probs(5)
    nodes = tuple(torch.rand(3).tolist())
    assert constant(nodes, heads.first) is constant(nodes, heads.second)
    before = _made()
    heads.bin_probs(5)
    heads.chance(0, -0.5, 0.25)
    after = _made()
    heads.chance(0, -0.5, 0.25)
    assert after - before == 1  # the two edges, which were not asked for before
    assert _made() == after


def _made():
    from headwise.ops import functions

    return functions._constant.cache_info().misses


# --- options --------------------------------------------------------------------------------------


def test_every_one_of_ten_thousand_options_can_be_drawn():
    log_probs = torch.zeros(10_000).log_softmax(-1).expand(1000, 1, -1)
    options = torch.arange(0, 10_000, 10)
    uniform = ((options + 0.5) / 10_000).unsqueeze(-1)
    found = pick(log_probs, uniform).flatten()
    assert (found - options).abs().max() <= 1  # a rounded edge, never a lost option
    last = pick(log_probs[:1], torch.tensor([[1.0 - 2.0**-24]]))
    assert last.item() == 9_999


def test_an_option_that_may_not_be_chosen_never_is():
    log_probs = torch.tensor([[0.0, -1e9, 0.0, -1e9]]).log_softmax(-1).expand(1000, 1, 4)
    uniform = Keys((0,)).uniform(Stream.ACT, 0, (1000, 1))[0]
    uniform[0], uniform[1] = 0.0, 1.0 - 2.0**-24
    assert set(pick(log_probs, uniform).flatten().tolist()) == {0.0, 2.0}


def test_an_option_is_the_first_whose_cumulative_probability_exceeds_the_number():
    log_probs = torch.tensor([0.25, 0.25, 0.5]).log().expand(5, 1, 3)
    uniform = torch.tensor([0.0, 0.2499, 0.2501, 0.4999, 0.5001]).unsqueeze(-1)
    assert pick(log_probs, uniform).flatten().tolist() == [0.0, 0.0, 1.0, 1.0, 2.0]


# --- heads that are in use under a condition ------------------------------------------------------


def test_entropy_by_hand():
    # kind: 1/2, 1/4, 1/4; `power` is in use with 1/2, `gear` with 1/4, `angle` with 1/2
    layout = Layout(PARAMETERS)  # kind, gear, power, angle
    table = layout.table([(0, 0), (0, 3), (0, 5), (0, 7)], kind="squashed", state_std=True)
    probs = torch.tensor([0.5, 0.25, 0.25, 0.5, 0.5]).log()
    heads = Distribution.kept(table, torch.cat([probs, torch.zeros(4)]).view(1, 1, 1, -1))
    gauss = 0.5 * math.log(2 * math.pi * math.e)
    expected = [1.5 * math.log(2), 0.25 * math.log(2), 0.5 * gauss, 0.5 * gauss]
    torch.testing.assert_close(heads.entropy().flatten(), torch.tensor(expected))
    torch.testing.assert_close(heads.activity().flatten(), torch.tensor([1.0, 0.25, 0.5, 0.5]))
    # given an action, heads are in use or not
    known = heads.entropy(torch.tensor([1.0, 0.0, 0.0, 0.0]).view(1, 1, 1, 4))
    expected = [1.5 * math.log(2), math.log(2), 0.0, gauss]
    torch.testing.assert_close(known.flatten(), torch.tensor(expected))


@pytest.mark.parametrize("kind", KINDS)
def test_activity_under_a_number_that_drives_the_alternative(kind):
    """In the continuous view a Range chooses the alternative: its mass says who is in use."""
    spec = View(PARAMETERS, "continuous").spec
    mean = torch.tensor([0.3, 0.0, 0.0, 0.0])
    given = (mean, torch.full((4,), -0.5)) if kind != "beta" else (1.5 + mean, 2.0 + mean)
    heads = of_numbers(kind, *given, Layout(spec).conditions)
    _, unit = drawn(heads, 200_000, 3)
    frequency = torch.as_tensor(spec.active(unit.double().numpy())).float().mean(0)
    assert frequency[1:].min() > 0.05
    torch.testing.assert_close(heads.activity().flatten(), frequency, atol=0.006, rtol=0)
