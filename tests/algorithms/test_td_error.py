"""Errors against bootstrapped targets: slopes are derivatives of the losses that are reported."""

import pytest
import torch

from headwise.algorithms.losses.td_error import TDError


def example(columns=2, *, in_use=False, huber=False, scale=0.25, predicted=None):
    generator = torch.Generator().manual_seed(0)

    def randoms(*shape):
        return 2.0 * torch.randn(*shape, generator=generator)

    found = randoms(3, 5, columns)
    used = (randoms(3, 5, columns) > 0).float() if in_use else None
    if used is not None:
        used[1] = 0.0
    return TDError(
        found if predicted is None else predicted, randoms(3, 5, 1), randoms(3, 5, 1),
        randoms(3, 5, columns), scale, used, huber,
    )  # fmt: skip


@pytest.mark.parametrize("in_use", [False, True])
@pytest.mark.parametrize("huber", [False, True])
def test_the_slope_is_the_derivative_of_the_loss(in_use, huber):
    one = example(in_use=in_use, huber=huber)
    predicted = one.predicted.clone().requires_grad_()
    again = example(in_use=in_use, huber=huber, predicted=predicted)
    (known,) = torch.autograd.grad(again.metrics()["train/loss"].sum(), predicted)
    torch.testing.assert_close(one.slope(), known)
    assert (known != 0).any()


def test_numbers_by_hand():
    one = TDError(
        predicted=torch.tensor([[[3.0], [1.0]]]),
        reward=torch.tensor([[[1.0], [2.0]]]),
        discount=torch.tensor([[[0.5], [0.0]]]),
        following=torch.tensor([[[-2.0], [7.0]]]),
        scale=0.5,
        in_use=None,
        huber=False,
    )
    # Targets 1 - 1 = 0 and 2: errors 3 and -1, each counts one half.
    assert one.slope().tolist() == [[[3.0], [-1.0]]]
    metrics = one.metrics()
    assert metrics["train/loss"].tolist() == [5.0]  # (9 + 1) / 2
    assert metrics["train/td_error"].tolist() == [2.0]
    assert metrics["train/q_values"].tolist() == [2.0]


def test_what_is_not_in_use_does_not_count():
    one = example(in_use=True, scale=2.0)
    count = one.in_use.flatten(1).sum(1)
    assert count[1] == 0
    assert (one.slope()[one.in_use == 0] == 0).all()
    # Every error in use counts 2 / how many of its member's are: in all 2.
    assert one.weight.flatten(1).sum(1).tolist() == pytest.approx([2.0, 0.0, 2.0])
