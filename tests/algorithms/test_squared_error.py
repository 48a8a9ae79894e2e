"""The squared error of a value, by hand. On a GPU it is a kernel; tests/gpu compares them."""

import torch

from headwise.algorithms.losses.squared_error import squared_error


def test_by_hand():
    """Errors 1 and -3 in the columns of a row that counts half, and 2 and 0 in one that counts 1.

    Member 0: (1 + 9) / 2 + 4 = 9; twice the error times the share is the slope. Member 1 has no
    row that counts.
    """
    error = torch.tensor([[[1.0, -3.0], [2.0, 0.0]]]).repeat(2, 1, 1)
    target = torch.full((2, 2, 2), 7.0)
    predicted = (target + error).requires_grad_()
    share = torch.tensor([[[0.5], [1.0]], [[0.0], [0.0]]])
    loss = squared_error(predicted, target, share)
    assert loss.tolist() == [9.0, 0.0]
    (slope,) = torch.autograd.grad(loss.sum(), predicted)
    assert slope.tolist() == [[[1.0, -3.0], [4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]
