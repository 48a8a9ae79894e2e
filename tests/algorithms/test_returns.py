import numpy as np
import pytest
import torch

from headwise.algorithms.importance import annealed_alpha, importance_weights
from headwise.algorithms.returns import discounted_sum, gae, td_error, td_target


def column(*values):
    """One member, one slot, one column: (1, T, 1, 1)."""
    return torch.tensor(values).view(1, -1, 1, 1)


def test_discounted_sum_by_hand():
    # 3; 2 + 0.5 * 3 = 3.5; 1 + 0.5 * 3.5 = 2.75
    assert discounted_sum(column(1.0, 2.0, 3.0), column(0.5, 0.5, 0.5)).flatten().tolist() == [
        2.75, 3.5, 3.0,
    ]  # fmt: skip


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 100, 128])
def test_discounted_sum_equals_the_loop(length):
    generator = torch.Generator().manual_seed(length)
    x = torch.randn(2, length, 3, 4, generator=generator)
    factor = torch.rand(2, length, 3, 1, generator=generator)
    y = torch.zeros(2, 3, 4)
    expected = torch.empty_like(x)
    for t in reversed(range(length)):
        y = x[:, t] + factor[:, t] * y
        expected[:, t] = y
    torch.testing.assert_close(discounted_sum(x, factor), expected)


def test_gae_by_hand_with_both_kinds_of_end():
    # gamma = 0.5, lambda = 0.5, so the trace factor is 0.25.
    # t:           0      1 (terminated)  2 (truncated)   3
    reward = column(1.0, 2.0, 3.0, 4.0)
    value = column(0.5, 1.0, 1.5, 2.0)
    after = column(1.0, 9.0, 4.0, 6.0)  # true successors; the 9 must not be used
    terminated = column(False, True, False, False)
    truncated = column(False, False, True, False)
    gamma = decay = torch.tensor(0.5)
    # delta: 1 + .5*1 - .5 = 1;  2 - 1 = 1;  3 + .5*4 - 1.5 = 3.5;  4 + .5*6 - 2 = 5
    assert td_error(reward, value, after, terminated, gamma).flatten().tolist() == [1, 1, 3.5, 5]
    # advantage: 5; 3.5 (no trace over the cut); 1 (no trace over the end); 1 + .25*1 = 1.25
    advantage = gae(reward, value, after, terminated, truncated, gamma, decay)
    assert advantage.flatten().tolist() == [1.25, 1.0, 3.5, 5.0]
    # targets: the terminated step has no successor, the truncated one has
    assert td_target(reward, after, terminated, gamma).flatten().tolist() == [1.5, 2.0, 5.0, 7.0]


def test_lambda_one_is_the_return_and_lambda_zero_one_step():
    reward, value = column(1.0, 1.0, 1.0), column(0.3, 0.2, 0.1)
    after = column(0.2, 0.1, 0.7)
    no = column(False, False, False)
    gamma = torch.tensor(0.9)
    full = gae(reward, value, after, no, no, gamma, torch.tensor(1.0))
    # 1 + .9 + .81 + .729 * .7 - .3
    assert full.flatten()[0].item() == pytest.approx(1 + 0.9 + 0.81 + 0.729 * 0.7 - 0.3)
    one = gae(reward, value, after, no, no, gamma, torch.tensor(0.0))
    torch.testing.assert_close(one, td_error(reward, value, after, no, gamma))


def test_importance_weighted_gae_sums_to_the_plain_one():
    generator = torch.Generator().manual_seed(0)
    shape = (2, 20, 3, 1)
    reward, value, after = (torch.randn(shape, generator=generator) for _ in range(3))
    terminated = torch.rand(shape, generator=generator) < 0.1
    truncated = ~terminated & (torch.rand(shape, generator=generator) < 0.1)
    gamma, decay = torch.tensor(0.97), torch.tensor(0.9)
    importance = torch.rand(2, 20, 3, 4, generator=generator)
    weight = importance_weights(importance, 0.7)
    torch.testing.assert_close(weight.sum(-1), torch.ones(2, 20, 3))
    by_head = gae(reward, value, after, terminated, truncated, gamma, decay, weight)
    plain = gae(reward, value, after, terminated, truncated, gamma, decay)
    torch.testing.assert_close(by_head.sum(-1, keepdim=True), plain)


def test_importance_weights_by_hand():
    importance = torch.tensor([1.0, 4.0])
    np.testing.assert_allclose(importance_weights(importance, 1.0), [0.2, 0.8], rtol=1e-6)
    np.testing.assert_allclose(importance_weights(importance, 0.5), [1 / 3, 2 / 3], rtol=1e-6)
    np.testing.assert_allclose(importance_weights(importance, 0.0), [0.5, 0.5])
    np.testing.assert_allclose(importance_weights(torch.zeros(4), 1.0), [0.25] * 4)  # no 0 / 0
    np.testing.assert_allclose(importance_weights(importance, 1.0, floor=0.5), [0.35, 0.65])


def test_annealing_begins_at_zero_and_ends_at_its_share():
    assert annealed_alpha(0, 48, 40 / 48) == 0.0
    assert annealed_alpha(20, 48, 40 / 48) == pytest.approx(0.5)
    assert annealed_alpha(40, 48, 40 / 48) == pytest.approx(1.0)
    assert annealed_alpha(47, 48, 40 / 48) == 1.0
