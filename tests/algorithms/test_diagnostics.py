"""Numbers that tell how learning goes."""

import torch

from headwise.algorithms.diagnostics import head_gradients


def test_gradients_of_heads_by_hand():
    """Losses a w_p and b w_p^2 of head 0 and 1: gradients a and 2 b w_p for member p."""
    weight = torch.nn.Parameter(torch.tensor([[2.0], [3.0]]))
    unused = torch.nn.Parameter(torch.ones(2, 1, 3))
    losses = torch.cat([5.0 * weight, 7.0 * weight.square()], dim=-1)
    found = head_gradients(losses, [weight, unused])
    expected = torch.zeros(2, 2, 4)
    expected[0, :, 0] = 5.0
    expected[1, :, 0] = torch.tensor([28.0, 42.0])
    assert torch.equal(found, expected)
