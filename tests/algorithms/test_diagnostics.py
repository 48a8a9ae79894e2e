"""Numbers that tell how learning goes."""

import math

import pytest
import torch

from headwise.algorithms.diagnostics import RunningMeans, head_gradients, movement


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


def test_movement_by_hand():
    """Two rows, two heads; the second row of member 0 does not count, and none of member 1."""
    log_ratio = torch.tensor([[[math.log(2.0), 0.0], [math.log(4.0), math.log(0.5)]]])
    log_ratio = log_ratio.repeat(2, 1, 1)
    valid = torch.tensor([[1.0, 0.0], [0.0, 0.0]]).unsqueeze(-1)
    found = movement(log_ratio, log_ratio.exp(), valid, torch.tensor([0.2, 3.0]))
    kl = {ratio: ratio - 1.0 - math.log(ratio) for ratio in (0.5, 2.0, 4.0)}
    assert found["train/approx_kl"].tolist() == pytest.approx([kl[2.0], 0.0])
    assert found["train/clip_fraction"].tolist() == pytest.approx([0.5, 0.0])
    assert found["train/joint_ratio"].tolist() == pytest.approx([2.0, 0.0])
    by_head = [0.5 * (kl[2.0] + kl[4.0]), 0.5 * kl[0.5]]
    assert found["heads/kl"].tolist() == [pytest.approx(by_head, rel=1e-5)] * 2
    assert found["heads/clip_fraction"].tolist() == [[1.0, 0.5], [0.0, 0.0]]


def test_running_means_leave_what_they_were_given():
    first, second = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 6.0], requires_grad=True)
    means = RunningMeans()
    means.add({"a": first, "b": first[:1]})
    means.add({"b": second[1:], "a": second})
    assert {name: x.tolist() for name, x in means.result().items()} == {"a": [2.5, 4.0], "b": [3.5]}
    assert first.tolist() == [1.0, 2.0]
    assert not means.result()["a"].requires_grad
