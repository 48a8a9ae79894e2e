import pytest
import torch

from headwise.algorithms.importance import annealed_alpha, importance_weights


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("floor", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1.0, 1e6])
def test_weights_sum_to_one_whatever_the_importance(alpha, floor, scale):
    importance = scale * torch.rand(2, 50, 4, generator=torch.Generator().manual_seed(0))
    importance[0, 0] = 0.0  # an untrained critic
    importance[0, 1, 1:] = 0.0
    weight = importance_weights(importance, alpha, floor)
    torch.testing.assert_close(weight.sum(-1), torch.ones(2, 50))
    assert (weight >= floor / 4 - 1e-6).all()


def test_only_heads_in_use_share_the_credit():
    importance = torch.tensor([4.0, 1.0, 1.0])
    in_use = torch.tensor([1.0, 0.0, 1.0])
    weight = importance_weights(importance, 1.0, 0.0, in_use)
    torch.testing.assert_close(weight, torch.tensor([0.8, 0.0, 0.2]))
    half = importance_weights(importance, 1.0, 0.5, in_use)  # 0.5 * 1/2 + 0.5 * weight
    torch.testing.assert_close(half, torch.tensor([0.65, 0.0, 0.35]))
    even = importance_weights(importance, 0.0, 0.0, in_use)
    torch.testing.assert_close(even, torch.tensor([0.5, 0.0, 0.5]))


def test_a_head_of_less_importance_never_gets_more():
    importance = torch.rand(100, 5, generator=torch.Generator().manual_seed(1))
    weight = importance_weights(importance, 0.6)
    assert torch.equal(weight.argsort(-1), importance.argsort(-1))


def test_a_share_of_nothing_applies_at_once():
    assert annealed_alpha(0, 10, 0.0) == 0.0
    assert annealed_alpha(1, 10, 0.0) == 1.0
    assert annealed_alpha(5, 10, 1.0) == 0.5
