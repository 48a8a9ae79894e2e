"""Functions that round the same wherever a number stands, with the right values and slopes."""

import pytest
import torch

from headwise.ops.functions import constant, elu, normal_of, power, softplus

EXACT = {
    "elu": (elu, torch.nn.functional.elu),
    "softplus": (softplus, torch.nn.functional.softplus),
}


@pytest.mark.parametrize("name", EXACT)
def test_values_and_slopes(name):
    ours, exact = EXACT[name]
    x = torch.linspace(-12.0, 12.0, 10_001, requires_grad=True)
    y = x.detach().double().requires_grad_()
    found, expected = ours(x), exact(y)
    torch.testing.assert_close(found.double(), expected, atol=4e-7, rtol=1e-6)
    (slope,) = torch.autograd.grad(found.sum(), x)
    (known,) = torch.autograd.grad(expected.sum(), y)
    torch.testing.assert_close(slope.double(), known, atol=1e-6, rtol=1e-6)


def test_the_slope_at_zero_is_one():
    """Of max-centered advantages the best are exactly zero: a slope of both pieces would be 2."""
    x = torch.zeros(3, requires_grad=True)
    assert torch.autograd.grad(elu(x).sum(), x)[0].tolist() == [1.0, 1.0, 1.0]


def test_powers():
    x = torch.linspace(0.01, 9.0, 1000)
    torch.testing.assert_close(power(x, 1.7), x.pow(1.7), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("function", [elu, softplus, lambda x: power(x.abs() + 0.1, 0.3)])
def test_the_place_does_not_matter(function):
    x = torch.randn(4099, generator=torch.Generator().manual_seed(0)) * 3
    whole = function(x)
    for begin in range(0, 4000, 37):
        for size in (1, 3, 16, 37):
            part = function(x[begin : begin + size].clone())
            assert torch.equal(part, whole[begin : begin + size])


def test_normal_numbers_are_symmetric_and_finite():
    low, high = normal_of(torch.tensor([0.0, 1.0 - 2.0**-24]))
    assert torch.isfinite(low)
    assert low == -high


def test_a_constant_is_made_once_for_every_kind_of_number():
    like = torch.zeros(2)
    first = constant((0.25, 3.0), like)
    assert first.tolist() == [0.25, 3.0]
    assert constant((0.25, 3.0), like) is first
    assert constant((0.25, 3.0), like.double()).dtype == torch.float64
