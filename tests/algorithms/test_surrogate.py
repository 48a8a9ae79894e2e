"""The clipped objective: by hand, and against what autograd makes of its formula."""

import math

import pytest
import torch

from headwise.algorithms.losses.surrogate import clipped_surrogate


def formula(log_ratio, advantage, low, high):
    ratio = log_ratio.clamp_max(20.0).exp()
    clipped = torch.minimum(torch.maximum(ratio, low), high)
    return torch.minimum(ratio * advantage, clipped * advantage)


def bounds(clip=0.2):
    return torch.tensor(1 - clip), torch.tensor(1 + clip)


def test_by_hand():
    # Inside; too high and good; too high and bad; too low and good; too low and bad.
    ratio = torch.tensor([1.1, 1.5, 1.5, 0.5, 0.5])
    advantage = torch.tensor([2.0, 2.0, -2.0, 2.0, -2.0])
    log_ratio = ratio.log().requires_grad_()
    surrogate, found = clipped_surrogate(log_ratio, advantage, *bounds())
    torch.testing.assert_close(surrogate, torch.tensor([2.2, 2.4, -3.0, 1.0, -1.6]))
    torch.testing.assert_close(found, ratio)
    assert not found.requires_grad
    (slope,) = torch.autograd.grad(surrogate.sum(), log_ratio)
    torch.testing.assert_close(slope, torch.tensor([2.2, 0.0, -3.0, 1.0, 0.0]))


def test_against_autograd():
    generator = torch.Generator().manual_seed(0)
    log_ratio = torch.randn(3, 50, 2, generator=generator, dtype=torch.float64).requires_grad_()
    advantage = torch.randn(3, 50, 2, generator=generator, dtype=torch.float64)
    clip = torch.tensor([0.1, 0.2, 0.5], dtype=torch.float64).view(3, 1, 1)
    ours, _ = clipped_surrogate(log_ratio, advantage, 1 - clip, 1 + clip)
    exact = formula(log_ratio, advantage, 1 - clip, 1 + clip)
    torch.testing.assert_close(ours, exact)
    weight = torch.randn(exact.shape, generator=generator, dtype=torch.float64)
    found, known = (torch.autograd.grad(x, log_ratio, weight)[0] for x in (ours, exact))
    torch.testing.assert_close(found, known)


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_a_ratio_beyond_all_bounds_has_no_gradient(advantage):
    log_ratio = torch.tensor([20.5], requires_grad=True)
    surrogate, ratio = clipped_surrogate(log_ratio, torch.tensor([advantage]), *bounds())
    assert ratio.item() == pytest.approx(math.exp(20), rel=1e-6)
    (slope,) = torch.autograd.grad(surrogate.sum(), log_ratio)
    assert slope.tolist() == [0.0]


def test_what_is_not_a_number_has_a_gradient_that_is_none():
    for log, worth in ((torch.nan, 1.0), (0.1, torch.nan)):
        log_ratio = torch.tensor([log], requires_grad=True)
        surrogate, _ = clipped_surrogate(log_ratio, torch.tensor([worth]), *bounds())
        (slope,) = torch.autograd.grad(surrogate.sum(), log_ratio)
        assert surrogate.isnan().all()
        assert slope.isnan().all()
